"""The questions that follow what is typed in `memctl find`, at a real daemon and without a screen."""

import asyncio

import pytest

from memctl.find.live_search import LiveSearch

PATIENCE_S = 80.0


@pytest.fixture
def live(sample, monkeypatch):
    """Run a function with a live search of the sample workspace, and what it has found by then."""
    for name, value in sample.daemon.environment.items():
        monkeypatch.setenv(name, value)

    def run(script):
        async def whole():
            asked, found, troubles = [{"workspace": str(sample.root)}], [], []
            searched = LiveSearch(asked, limit=10, on_found=found.append, on_trouble=troubles.append)
            running = asyncio.create_task(searched.run())
            async with asyncio.timeout(PATIENCE_S):
                while not troubles:  # noqa: ASYNC110 - a test may poll; "": it is connected
                    await asyncio.sleep(0.01)
                await script(searched, found)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            return found

        return asyncio.run(whole())

    return run


async def meant(found, typed):
    """Wait until something was answered by meaning."""
    while not (found and found[-1].typed == typed and found[-1].by_meaning):  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)


def test_words_answer_at_once_and_meaning_when_one_pauses(live):
    async def script(searched, found):
        searched.ask("flu jab")
        await meant(found, "flu jab")

    words, meaning = (one for one in live(script) if one.typed)
    assert (words.by_meaning, meaning.by_meaning) == (False, True)
    assert "research/vaccines.md" not in [hit["path"] for hit in words.hits]
    assert "research/vaccines.md" in [hit["path"] for hit in meaning.hits]


def test_what_is_answered_too_late_is_dropped(live):
    asked = []

    async def script(searched, found):
        call = searched._client.call

        async def counted(method, params, **options):
            asked.append(params["query"])
            return await call(method, params, **options)

        searched._client.call = counted
        for end in range(1, 8):
            searched.ask("vaccine"[:end])
            await asyncio.sleep(0)  # as the screen is given its turn
        await meant(found, "vaccine")

    assert {one.typed for one in live(script) if one.typed} == {"vaccine"}
    assert len(asked) <= 4  # what was typed first, the whole by words and by meaning, its filters


def test_a_word_that_is_being_typed_finds_what_it_begins(live):
    async def script(searched, found):
        searched.ask("mrna vaccin")
        await meant(found, "mrna vaccin")

    words = next(one for one in live(script) if one.typed)
    assert words.hits[0]["path"] == "research/vaccines.md"
    assert words.corrected in {("vaccine",), ("vaccines",)}

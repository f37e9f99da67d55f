import array
import asyncio
import math

import pytest
from patience import PATIENCE
from tests_support import InlineThreads, LatinEmbedder, context_of

from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.queue import EmbeddingQueue
from memd.errors import EmbedderError
from memd.records import UNMEASURED
from memd.search.confidence import STRONG
from memd.workspace.backlog import Backlog
from memd.workspace.embed_loop import EmbedLoop


def of(notes, queue):
    """The vectors of these notes, with nobody who follows and no sidecars."""
    return EmbedLoop(context_of(notes, embedding=queue), Backlog())


def vectorizing(notes, embedder):
    queue = EmbeddingQueue(lambda: embedder, retry_s=(0.01, 0.01))
    return of(notes, queue), queue


async def until_done(task: EmbedLoop) -> None:
    """Run it until it says that everything has its vector."""
    done = asyncio.Event()

    async def complete() -> None:
        done.set()

    running = asyncio.create_task(task.run(complete))
    await asyncio.wait({running, asyncio.create_task(done.wait())}, return_when=asyncio.FIRST_COMPLETED)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_what_waits_gets_its_vectors(notes):
    notes.save({f"{number}.md": f"word{number}\n" for number in range(70)}, embed=False)
    task, queue = vectorizing(notes, notes.embedder)

    async def run() -> None:
        await task.count()
        assert task.pending == 70
        await until_done(task)

    asyncio.run(run())
    queue.close()
    assert (task.pending, task.failing) == (0, False)
    assert notes.found("word7", mode="vector")[0] == "7.md"


def test_what_the_model_does_not_read_does_not_wait(notes):
    notes.save({"en.md": "heron\n", "ru.md": "цапля\n", "zh.md": "苍鹭\n"}, embed=False)
    task, queue = vectorizing(notes, LatinEmbedder())

    async def run() -> None:
        await task.count()
        assert (task.pending, task.unreadable) == (3, 0)
        await until_done(task)

    asyncio.run(run())
    queue.close()
    assert (task.pending, task.unreadable) == (0, 2)
    assert notes.found("heron", mode="vector") == ["en.md"]


def test_a_text_that_the_model_refuses_keeps_no_other_out(notes):
    class Picky:
        def __getattr__(self, name):
            return getattr(notes.embedder, name)

        def embed_documents(self, texts):
            if any("poison" in text for text in texts):
                raise EmbedderError("no")
            return notes.embedder.embed_documents(texts)

    notes.save({**{f"{n}.md": f"word{n}\n" for n in range(40)}, "p.md": "poison\n"}, embed=False)
    task, queue = vectorizing(notes, Picky())
    asyncio.run(until_done(task))
    queue.close()
    assert task.pending == 0
    assert notes.index.unembedded_count() == 1
    assert notes.found("word7", mode="vector")[0] == "7.md"
    assert notes.found("poison") == ["p.md"]


def test_where_the_model_takes_no_text_none_is_at_fault(notes):
    faults = [EmbedderError("no")] * 40

    class Moody:
        def __getattr__(self, name):
            return getattr(notes.embedder, name)

        def embed_documents(self, texts):
            if faults:
                raise faults.pop()
            return notes.embedder.embed_documents(texts)

    notes.save({f"{number}.md": f"word{number}\n" for number in range(40)}, embed=False)
    task, queue = vectorizing(notes, Moody())
    failures = 0
    while notes.index.unembedded_count() and failures < 100:
        asyncio.run(until_done(task))
        failures += task.failing
    queue.close()
    assert failures
    assert (task.pending, task.failing, notes.index.unembedded_count()) == (0, False, 0)


def test_the_model_has_the_next_texts_while_vectors_are_committed(notes):
    given = []

    class Noting:
        def __getattr__(self, name):
            return getattr(notes.embedder, name)

        def embed_documents(self, texts):
            given.extend(texts)
            return notes.embedder.embed_documents(texts)

    class SlowDisk(InlineThreads):
        commits = 0

        async def write(self, work, *args):
            before = notes.index.unembedded_count()
            done = await super().write(work, *args)
            if notes.index.unembedded_count() < before and notes.index.unembedded_count():
                self.commits += 1
                committed = 60 - notes.index.unembedded_count()
                async with asyncio.timeout(5 * PATIENCE):
                    while len(given) <= committed:  # noqa: ASYNC110 - a thread of the model counts
                        await asyncio.sleep(0.001)
            return done

    notes.save({f"{number}.md": f"word{number}\n" for number in range(60)}, embed=False)
    queue = EmbeddingQueue(Noting, retry_s=(0.01, 0.01))
    disk = SlowDisk()
    task = EmbedLoop(context_of(notes, embedding=queue, threads=disk), Backlog())
    asyncio.run(until_done(task))
    queue.close()
    assert disk.commits > 1
    assert len(given) == 60, "each text once"
    assert notes.index.unembedded_count() == 0


def test_with_nothing_to_do_it_sleeps(notes):
    """Idle means idle: the writing thread is not asked again and again."""
    notes.save({"a.md": "word\n"}, embed=False)
    asked = []

    class CountingThreads(InlineThreads):
        async def write(self, work, *args):
            asked.append(work)
            return await super().write(work, *args)

    queue = EmbeddingQueue(lambda: notes.embedder, retry_s=(0.01, 0.01))
    task = EmbedLoop(context_of(notes, embedding=queue, threads=CountingThreads()), Backlog())

    async def nothing() -> None:
        return

    async def run() -> None:
        running = asyncio.create_task(task.run(nothing))
        await asyncio.sleep(0.3)
        assert notes.index.unembedded_count() == 0
        before = len(asked)
        assert before
        await asyncio.sleep(0.1)
        assert len(asked) - before < 5
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
    queue.close()


def test_without_a_model_nothing_waits(notes):
    notes.save({"a.md": "word\n"}, embed=False)
    task = of(notes, None)
    asyncio.run(task.count())
    assert (task.pending, task.wanted) == (0, False)


def test_a_model_that_cannot_be_loaded_is_said_and_not_waited_for(notes):
    def load():
        raise EmbedderError("broken")

    queue = EmbeddingQueue(load, retry_s=(60, 60))
    task = of(notes, queue)

    async def never() -> None:
        raise AssertionError

    with pytest.raises(EmbedderError, match="broken"):
        asyncio.run(task.run(never))
    queue.close()
    assert task.failing


class Unknown(OnnxEmbedder):
    """A model that does not state its cosines, which are those of the shipped one, all lifted."""

    def __init__(self) -> None:
        super().__init__()
        self.cosines = None
        self.model_id = "unknown"
        self.dim += 1
        self.questions = 0

    def embed_queries(self, texts):
        self.questions += len(texts)
        return super().embed_queries(texts)

    def _embed(self, text: str) -> bytes:
        return array.array("f", [*(0.4 * self._vector(text)), math.sqrt(0.84)]).tobytes()


def test_a_model_that_does_not_state_its_cosines_is_measured_once(notes):
    notes.save({"a.md": "heron at the pond\n", "b.md": "taxes and forms\n"}, embed=False)
    embedder = Unknown()
    task, queue = vectorizing(notes, embedder)
    asyncio.run(until_done(task))
    queue.close()
    assert notes.index.snapshot.cosines == embedder.cosines
    assert embedder.cosines.is_measured
    assert embedder.cosines.zero > 0.8
    again = notes.embedder = Unknown()
    notes.reopen()
    task, queue = vectorizing(notes, again)
    asyncio.run(until_done(task))
    queue.close()
    assert (again.questions, again.cosines) == (0, None)
    assert notes.index.snapshot.cosines.is_measured
    notes.embedder = Unknown()
    found = notes.search("a bird in the water", mode="vector", min_score=0).hits
    scores = {hit.source.path: hit.candidate.vector_score for hit in found}
    assert scores["a.md"] > 0.3
    assert scores.get("b.md", 0.0) < 0.2


def test_until_it_is_measured_words_alone_make_an_answer_strong(notes):
    """High cosines mean nothing, and the notes get their vectors all the same."""

    class Failing(Unknown):
        def embed_queries(self, texts):
            if len(texts) > 1:
                raise EmbedderError("too many at once")
            return super().embed_queries(texts)

    notes.save({"a.md": "heron at the pond\n", "b.md": "taxes and forms\n"}, embed=False)
    task, queue = vectorizing(notes, Failing())
    asyncio.run(until_done(task))
    queue.close()
    notes.embedder = Failing()
    assert (task.pending, notes.index.snapshot.cosines) == (0, UNMEASURED)
    answer = notes.search("bicycle", mode="hybrid")
    assert answer.hits[0].candidate.merged > 0.5
    assert notes.search("bicycle", mode="vector").hits[0].candidate.merged > STRONG
    assert notes.search("bicycle", mode="vector").confidence == "weak"
    assert notes.search("heron pond", mode="hybrid").confidence == "strong"

import os
import re

import pytest
from tests_support import Notes, WordHashEmbedder, WordTokenizer

from memd.index.reader import TWOFOLD
from memd.index.visibility import Visibility
from memd.search.search import search
from memd.sources.ignore import Patterns

TOKEN = "ghp_" + "aB3dE5fG7hJ9" * 3
# Shorter lines than those of base64 that is indexed as one word.
_LINES = [f"{number:02}IEowIBAAKCAQEA" * 3 for number in range(60)]
KEY = "\n".join(["-----BEGIN RSA PRIVATE " + "KEY-----", *_LINES])
NOTES = {
    "pay.md": "---\nprivate: true\ntags: [wages]\n---\n# Pay\n\nWages of Zephyrine, who mends the weir.\n",
    "weir.md": "# Weir\n\nThe weir was mended in May.\n",
    "letters/ada.md": "# Ada\n\nAda wrote that the weir leaks.\n",
    "letters/open.md": "# Open\n\nAn open letter on the weir.\n",
}


class SmallPieces(WordTokenizer):
    """Pieces of three characters, about what a model makes of keys."""

    def spans(self, text):
        return [match.span() for match in re.finditer(r"\S{1,3}", text)]

    def count(self, text):
        return len(self.spans(text))


class SmallPiecesEmbedder(WordHashEmbedder):
    tokenizer = SmallPieces()


@pytest.fixture
def finely_cut(tmp_path):
    """Notes whose model reads 254 pieces of three characters at once."""
    notes = Notes(tmp_path, embedder=SmallPiecesEmbedder())
    yield notes
    notes.index.close()


def visible(*patterns: str) -> Visibility:
    return Visibility(Patterns((("", pattern) for pattern in patterns), below=True))


def seen(notes, visibility, query, **settings):
    """Return the paths that an agent finds."""
    with notes.index.view(visible=visibility) as view:
        return sorted(hit.source.path for hit in search(view, notes.request(query, **settings)).hits)


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "vector"])
def test_a_private_note_is_in_no_answer_to_an_agent(notes, mode):
    notes.save(NOTES)
    everything = {"mode": mode, "min_score": 0.0}
    assert seen(notes, visible(), "weir", **everything) == ["letters/ada.md", "letters/open.md", "weir.md"]
    assert "pay.md" in notes.found("weir", **everything)
    assert notes.found("zephyrine") == ["pay.md"]


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (["letters/"], ["weir.md"]),
        (["*.md"], []),
        (["letters/*", "!letters/open.md"], ["letters/open.md", "weir.md"]),
        (["!pay.md"], ["letters/ada.md", "letters/open.md", "weir.md"]),
    ],
)
def test_patterns_keep_notes_from_agents(notes, patterns, left):
    notes.save(NOTES)
    assert seen(notes, visible(*patterns), "weir") == left


def test_what_cannot_be_known_is_kept(notes):
    notes.save(NOTES)
    unusable = Visibility(Patterns([("", "a" * 2000)]))
    assert seen(notes, unusable, "weir") == []


def test_a_limit_is_filled_with_what_may_be_seen(notes):
    """A private note takes no place: it is left out before the cut, and nothing is folded into it."""
    notes.save(NOTES | {f"pay{number}.md": NOTES["pay.md"] for number in range(30)})
    notes.save({"same.md": NOTES["pay.md"].replace("private: true\n", "")})
    assert len(seen(notes, visible(), "weir", limit=3)) == 3
    with notes.index.view(visible=visible()) as view:
        [hit] = search(view, notes.request("zephyrine wages")).hits
    assert (hit.source.path, hit.folded) == ("same.md", ())


def test_nothing_counts_what_is_kept(notes):
    notes.save(NOTES)
    with notes.index.view() as view:
        count = view.snapshot.columns.count
        assert view.postings("zephyrine", prefix=False).document_frequency == 1
    with notes.index.view(visible=visible()) as view:
        assert view.snapshot.columns.count == count - 1
        assert view.postings("zephyrine", prefix=False).document_frequency == 0
        assert view.postings("weir", prefix=False).document_frequency == 3
        assert view.snapshot.source_at("pay.md") is None
        assert view.inside("ephyrin", 100) == {}
    with notes.index.view() as view:
        assert view.snapshot.columns.count == count


def test_a_note_becomes_private_and_open_again_with_its_next_commit(notes):
    """Also where its chunks stay the same, and where it was gone in between."""
    visibility = visible()
    for text, found in ((NOTES["pay.md"], []), (NOTES["pay.md"].replace("true", "false"), ["pay.md"])) * 2:
        notes.save({"pay.md": text})
        assert seen(notes, visibility, "zephyrine") == found
    notes.save({"pay.md": NOTES["pay.md"]})
    notes.remove("pay.md")
    notes.save({"pay.md": NOTES["pay.md"]})
    assert seen(notes, visibility, "zephyrine") == []
    notes.reopen()
    assert seen(notes, visible(), "zephyrine") == []


def test_where_nothing_is_kept_the_snapshot_is_the_same(notes):
    """That costs nothing; if some notes are hidden, it is made once a generation."""
    notes.save({"weir.md": NOTES["weir.md"]})
    visibility = visible()
    with notes.index.view(visible=visibility) as view:
        assert view.snapshot is notes.index.snapshot
    notes.save(NOTES)
    with notes.index.view(visible=visibility) as one, notes.index.view(visible=visibility) as other:
        assert one.snapshot is other.snapshot is not notes.index.snapshot


def shown(notes, query, visibility):
    with notes.index.view(visible=visibility) as view:
        return search(view, notes.request(query)).hits


def test_chunks_with_secrets_are_found_without_a_look_at_all_others(notes):
    """After each save: of 200,000 chunks that took 17 ms."""
    notes.save({"note.md": "a note\n"})
    with notes.index.view() as view:
        plan = [text for *_, text in view.reader.each(f"EXPLAIN QUERY PLAN {TWOFOLD}")]
    assert plan[0].endswith("USING INDEX chunks_hidden")


def test_agents_get_texts_without_secrets_and_people_get_them_whole(notes):
    front = f"---\ntitle: Router {TOKEN}\ntags: [{TOKEN}]\n---\n"
    notes.save({"router.md": f"{front}# Router\n\n## Key {TOKEN}\n\nIts token is {TOKEN}.\n"})
    [hit] = shown(notes, "router token", visible())
    told = repr(hit)
    assert TOKEN not in told
    assert told.count("[masked: github-pat]") > 4
    [hit] = shown(notes, "router token", None)
    for part in (hit.chunk.text, hit.snippet.text, hit.source.title, hit.chunk.heading):
        assert TOKEN in part
    assert hit.source.tags == (TOKEN,)


CUT_KEY = f"# Key\n\nThe weir's key:\n\n{KEY}\n-----END RSA PRIVATE KEY-----\n\nAfter the weir.\n"
JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJ" + "aB3dE5fG7hJ9" * 300 + "." + "aB3dE5fG7hJ9" * 4


@pytest.mark.parametrize(
    ("text", "secret", "shown"),
    [
        # A chunk that has lines of the key without the first shows none of them.
        (CUT_KEY, "IEowIB", "After the weir."),
        # Parts of a line that is too long for a chunk are looked at together, whatever stands before them.
        ("é " * 150 + JWT + " und dann die weir " * 60, "aB3dE5", "é é é"),
    ],
)
def test_a_secret_that_is_cut_into_chunks_is_masked_in_each(finely_cut, text, secret, shown):
    finely_cut.save({"key.md": text})
    with finely_cut.index.view(visible=visible()) as view:
        [source] = view.snapshot.sources
        told = view.reader.chunks_of(source)
    with finely_cut.index.view() as view:
        stored = view.reader.chunks_of(source)
    assert sum(secret in chunk.text for chunk in stored) > 1
    assert not any(secret in chunk.text for chunk in told)
    assert told[-1].end_line == stored[-1].end_line
    assert shown in "".join(chunk.text for chunk in told)


def test_a_private_note_holds_in_the_place_of_none_that_agents_see(notes):
    """Agents do not learn of it, and find what it supersedes as if it did not exist."""
    newer = "---\nprivate: true\nsupersedes: weir.md\n---\n# Weir\n\nThe weir was mended in June.\n"
    notes.save({"weir.md": NOTES["weir.md"], "newer.md": newer})
    [hit] = shown(notes, "mended May", visible())
    assert (hit.source.path, hit.superseded_by) == ("weir.md", ())
    assert {hit.superseded_by for hit in shown(notes, "mended weir", None)} == {(), ("newer.md",)}


def test_a_name_that_a_private_note_has_too_means_the_other_one_to_agents(notes):
    """What supersedes by a name of two notes supersedes nobody; to who sees one of them, that one."""
    newer = "---\nsupersedes: weir\n---\n# Weir\n\nThe weir was mended in June.\n"
    notes.save({"a/weir.md": NOTES["weir.md"], "b/weir.md": NOTES["pay.md"], "newer.md": newer})
    found = {hit.source.path: hit.superseded_by for hit in shown(notes, "mended", visible())}
    assert found == {"a/weir.md": ("newer.md",), "newer.md": ()}
    assert not any(hit.superseded_by for hit in shown(notes, "mended", None))


def test_an_agents_generation_is_that_of_the_last_commit_that_it_sees(notes):
    """Saves, vectors and removals of private notes count no commit for agents, also after a reopening."""

    def generations():
        with notes.index.view(visible=visible()) as view:
            seen = view.snapshot.generation
        return seen, notes.index.snapshot.generation

    notes.save({"weir.md": NOTES["weir.md"]})
    seen, at_first = generations()
    assert seen == at_first
    notes.save({"pay.md": NOTES["pay.md"]})
    notes.save({"pay.md": NOTES["pay.md"] + "More.\n"})
    assert generations()[0] == seen
    notes.reopen()
    assert generations()[0] == seen
    notes.remove("pay.md")
    assert generations()[0] == seen
    assert generations()[1] > at_first
    notes.save({"pay.md": NOTES["pay.md"].replace("private: true\n", "")})
    seen, newest = generations()
    assert seen == newest
    notes.save({"pay.md": NOTES["pay.md"]}, embed=False)
    assert generations() == (newest + 1, newest + 1), "it became private, which agents see"
    for path, seen in (("pay.md", newest + 1), ("weir.md", newest + 3)):
        os.utime(notes.root / path, (1_600_000_000, 1_600_000_000))
        notes.indexer.apply([path])
        assert generations()[0] == seen, path

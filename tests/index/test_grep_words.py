"""Each word that `grep -w` finds in a note is found by the keyword arm."""

import re
from pathlib import Path

import pytest

from memd.search.keyword import phrase_expression

SAMPLE = Path(__file__).parents[1] / "sample"
DIALECTS = {
    "yaml.md": "---\ntitle: Tea: a survey\nauthor: Jane Kestrelsson\n---\n\n# Head\n\nText of it.\n",
    "rules.md": "---\n\nDecision: we keep walruses out.\n\n---\n\nMore.\n",
    "broken.md": "---\n: [\nword: [a\n---\nText\n",
    "logseq.md": "type:: bookbinding\nalias:: Codex\n\n- Block\n  key:: inner\n",
    "links.md": "See [the quick](https://example.com/zymurgy?q=xanadu) and [[deep/note|a label]], [^foot].\n",
    "table.md": "| a | b |\n|---|---|\n| walrus | 0x1F |\n",
    "html.md": "<details><summary>Quoin</summary>\n\n<b>plinth</b></details>\n",
    "math.md": "$$\nvelocity\n=\ndistance\n$$\n",
    "long.md": " ".join(f"word{n}" for n in range(3_000)) + "\n",
    "mark.md": "Ruby Explained™ costs 38\n",
    "blob.md": f"See [it](https://example.com/play#code/{'Ab3+' * 60}?end) there\n",
    "dense.md": ",".join(f"w{n}x" for n in range(3_000)) + "\n",
}
# Words that are not found, with the reason.
EXCEPTIONS = {
    "yaml.md": {"title", "author"},  # keys: a query names them with key=value
    "mark.md": {"Explained"},  # ™ is the letters TM for the index, which compares compatible signs as equal
    "blob.md": {"Ab3"},  # data in base64 is one word
}
_WORD = re.compile(r"[^\W_]+")


def missing(notes, path, text):
    with notes.index.view() as view:
        sources = {source.path: source.id for source in view.snapshot.sources.values()}
        words = {word for word in _WORD.findall(text) if word.isascii()}
        chunks = {chunk.id for chunk in view.reader.chunks_of(sources[path])}
        return {word for word in words if chunks.isdisjoint(view.matching("words", phrase_expression(word)))}


def test_the_words_of_every_dialect(notes):
    notes.save(DIALECTS, embed=False)
    for path, text in DIALECTS.items():
        assert missing(notes, path, text) <= EXCEPTIONS.get(path, set()), path


@pytest.mark.parametrize("joint", [" ", ", ", ",", "\uff0c", "_ ", "; "])
def test_neighbours_in_one_long_line_are_a_phrase(notes, joint):
    """A cut inside a line parts no phrase of a few words, however the words are parted."""
    words = [f"word{n}" for n in range(1_500)]
    notes.save({"long.md": joint.join(words) + "\n"}, embed=False)
    with notes.index.view() as view:
        asked = [" ".join(words[at : at + 3]) for at in range(len(words) - 2)]
        assert [one for one in asked if not view.matching("words", phrase_expression(one))] == []
        texts = [chunk.text for chunk in view.reader.chunks_of(next(iter(view.snapshot.sources)))]
    assert sum(text.count("word7") for text in texts) == sum(word.startswith("word7") for word in words)


def test_characters_in_one_long_line_are_a_phrase(notes):
    text = "".join(chr(0x4E00 + n) for n in range(3_000))
    notes.save({"long.md": text + "\n"}, embed=False)
    with notes.index.view() as view:
        asked = [text[at : at + 3] for at in range(len(text) - 2)]
        assert [one for one in asked if not view.matching("words", phrase_expression(one))] == []


def test_the_words_of_the_sample(notes):
    texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(SAMPLE.rglob("*.md"))}
    if not texts:
        pytest.skip("no sample")
    notes.save(texts, embed=False)
    for path, text in texts.items():
        head = text.split("\n---", 1)[0].split("\n") if text.startswith("---") else []
        # Keys, and what memd writes about the origin of an entry.
        named = [one if one.startswith((" ", "sha256")) else one.partition(":")[0] for one in head]
        allowed = set(_WORD.findall(" ".join(named)))
        assert missing(notes, path, text) <= allowed, path

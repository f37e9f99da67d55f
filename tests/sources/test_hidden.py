"""What the reader of a note never sees is no text, and what is text keeps its lines."""

import pytest

from memd.sources.chunk import parse
from tests.sources.test_chunk import LIMITS, tokenizer


def read(text):
    return parse(text, tokenizer=tokenizer("short pieces"), limits=LIMITS)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("A %%hidden%% heron.\n", "A heron."),
        ("A\n\n%%\nhidden\n\n## too\n%%\n\nheron.\n", "A heron."),
        ("%% kanban:settings\n```\n{}\n```\n%%\nheron.\n", "heron."),
        ("```\n%%time\nx %%y%%\n```\n", "``` %%time x %%y%% ```"),
        ("A `%%x%%` heron.\n", "A `%%x%%` heron."),
        ("Of 5%% and 10%% heron.\n", "Of 5%% and 10%% heron."),
        ("%% never closed\nheron.\n", "%% never closed heron."),
        (
            "---\nexcalidraw-plugin: parsed\n---\nText\n\n# Drawing\n```json\n{'a': 1}\n```\nheron.\n",
            "Text heron.",
        ),
    ],
)  # fmt: skip
def test_comments_and_drawings_are_no_text(text, left):
    assert " ".join(word for chunk in read(text).chunks for word in chunk.text.split()) == left


def test_the_text_behind_a_comment_is_at_its_line():
    [chunk] = read("%%\nhidden\n%%\nheron\n").chunks
    assert (chunk.start_line, chunk.text) == (4, "heron")


def test_a_line_of_a_formula_is_no_heading():
    document = read("# Title\n\n$$\na\n=\nb\n$$\n\nText\n")
    assert {chunk.heading for chunk in document.chunks} == {"Title"}
    assert read("$$ 5 is\n=\n\nText $$\n").title == "$$ 5 is"


def test_a_label_may_come_first():
    """Dendron's front matter has milliseconds, and its links have their label in front."""
    text = "See [[the weir|ponds.weir]].\n"
    assert [link.target for link in read(text).links] == ["the weir"]
    dendron = f"---\nid: a\ncreated: 1676376000000\n---\n{text}"
    assert [link.target for link in read(dendron).links] == ["ponds.weir"]

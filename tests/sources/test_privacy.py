import pytest

from memd.sources.privacy import HEAD_CHARS, is_private

PRIVATE = [
    "---\nprivate: true\n---\ntext",
    "---\r\nprivate: true\r\n---\r\ntext",
    "---\ntitle: Pay\nprivate:   Yes # of course\n---\n",
    "---\nprivate: 'true'\n...\n",
    '---\n"private": on\n---\n',
    "---\nPrivate: True\n---\n",
    "---\n{title: Pay, private: true}\n---\n",
    "---\nprivate:\n---\n",  # unclear
    "---\nprivate: perhaps\n---\n",
    "---\nprivate:true\n---\n",  # no YAML
    "---\ntitle: [broken\nprivate: true\n---\n",
    "---  \nprivate: true\n---\n",
    "---\nprivate: true\n\nnobody closed it",
    "---\nprivate: true",
    "---\nprivate: false\nprivate: true\n---\n",
]
OPEN = [
    "",
    "private: true",
    "text\n---\nprivate: true\n---\n",
    "---\nprivate: false\n---\n",
    "---\nprivate: no\n---\nprivate: true",
    "---\nprivate: null\n---\n",
    "---\nmeta:\n  private: true\n---\n",
    "---\ntitle: private\ntags: [private]\n---\n",
    "---\nprivateer: true\n---\n",
    "---\nnot private\n---\n\nprivate: true\n",
    "---\n\nA thematic break. private: true",
    "---\nA thematic break.\n\nprivate: true\n",
]


@pytest.mark.parametrize("text", PRIVATE)
def test_a_note_that_says_so_is_private(text):
    """Also where its front matter is broken, unfinished or unclear."""
    assert is_private(text)


@pytest.mark.parametrize("text", OPEN)
def test_a_note_that_does_not_say_so_is_not(text):
    """What stands in the text, under another key or inside of a map says nothing."""
    assert not is_private(text)


def test_front_matter_that_is_too_long_is_read_up_to_its_limit():
    """Nobody waits for a note that is all front matter; what is beyond the limit is text to the parser."""
    assert is_private("---\nprivate: true\n" + "a: b\n" * HEAD_CHARS)
    assert not is_private("---\n" + "a: b\n" * HEAD_CHARS + "private: true\n---\n")

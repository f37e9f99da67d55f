"""What says of a note that no agent may have it, and what does not."""

import itertools
import random
import time

import pytest
from tests_support import many

from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines
from memd.sources.privacy import HEAD_CHARS, is_private

PRIVATE = [
    "---\nprivate: true\n---\ntext", "---\r\nprivate: true\r\n---\r\ntext",
    "---\ntitle: Pay\nprivate:   Yes # of course\n---\n", "---\nprivate: 'true'\n...\n",
    '---\n"private": on\n---\n', "---\nPrivate: True\n---\n", "---\n{title: Pay, private: true}\n---\n",
    "---\nprivate:\n---\n",  # unclear
    "---\nprivate: perhaps\n---\n", "---\nprivate:true\n---\n",  # no YAML
    "---\ntitle: [broken\nprivate: true\n---\n", "---  \nprivate: true\n---\n",
    "---\nprivate: true\n\nnobody closed it", "---\nprivate: true",
    "---\nprivate: false\nprivate: true\n---\n", '{"private": true}\n\ntext',
    '{\n  "title": "Pay",\n  "private": "yes"\n}\ntext', "title:: Pay\nprivate:: true\n\n- text",
    "- private::\n- text",
]  # fmt: skip
# Spellings of the map of a whole document, as YAML has them.
SPELLED = [
    "  title: Pay\n  private: true", "{\n  title: Pay,\n  private: true\n}", "{title: Pay,\nprivate: true}",
    '{"private":true}', "? private\n: true", "? private", '? "priv\\\n  ate"\n: true',
    '"priv\\u0061te": true', '"\\x70rivate": true', '"\\U00000070rivate": true', "!!str private: true",
    '! "private": true', "&key private: true", "private: &value true", 'private: !!bool "true"',
    "private : true", "'private'   :   yes", "private:\n  true", "private: |\n  true", "private: >-\n  yes",
    "private: [true]", "private: [false]",  # unclear
    "private: {}", "PRIVATE: YES", "title: Pay\u2028private: true", "title: Pay\x85private: true",
    "# a comment\n\nprivate: true", 'title: "of\n  two lines"\nprivate: true',
    "title: |\n  ---\n  private: false\nprivate: true", "base: &base {private: true}\n<<: *base",
    "<<: [{a: b}, {private: true}]", "tags: &name private\n*name : true", "\uff50rivate: true",
    "pri\u00advate: true",
]  # fmt: skip
# What is no YAML, or not as a whole, and says it to whoever reads it.
BROKEN = [
    "title: x\n```\nprivate: true",
    "private：true", "private = true", "private:\ttrue", "\tprivate: true",
    "title: Pay: round\n  private: true", "title: Pay: round\n{title: Pay, private: true",
    "title: [broken\n'private': yes", "title: [broken\n? private\n: true",
    "title: [broken\n!!str private: true", 'title: [broken\n"priv\\u0061te": true',
    "title: Pay\nprivate true: [\nprivate: true", "\0title: Pay\nprivate: true", "title: Pay\nprivate=yes",
    'title: "\\U00110000"\nprivate: true',
]  # fmt: skip
# In place of the line that opens the front matter of `private: true`, which a line of the same end closes.
OPENINGS = [
    "\ufeff---\n", "\ufeff\ufeff---\n", "\n---\n", "\n \n\t\n---\n", "# a comment\n---\n",
    "<!-- a comment -->\n---\n", "%YAML 1.2\n---\n", "%YAML 1.2\n# a comment\n\n--- # another one\n",
    "--- !!map\n", "  ---\n", "-----\n", "---\ntitle: Pay\n---\n",  # a second document
    "---\n---\n", "---\ntitle: Pay\n---\n---\n", "---\ntitle: Pay\n---\n\n---\n",
    "---\ntitle: Pay\n...\n---\n", "---\r",
]  # fmt: skip
OPEN = [
    "", '{"private": false}\n\ntext', "private:: false\n\ntext", "- text\n- private:: true", "private: true",
    "text\n---\nprivate: true\n---\n", "---\nprivate: false\n---\n", "---\nprivate: no\n---\nprivate: true",
    "---\nprivate: null\n---\n", "---\nmeta:\n  private: true\n---\n",
    "---\ntitle: private\ntags: [private]\n---\n", "---\nprivateer: true\n---\n",
    "---\nnot private\n---\n\nprivate: true\n", "---\n\nA thematic break. private: true",
    "---\nA thematic break.\n\nprivate: true\n", "# Private\n\nThis is private: nobody else reads it.\n",
    "---\ntitle: 'Keys: public, private: both'\n---\ntext",
    "---\ntitle: Keys: public, private: both\n---\ntext",  # broken, and says nothing
    "---\ntitle: a: b\ntags:\n  - private\n---\n", "---\ntags: [private, {private: true}]\n---\n",
    "---\ndescription: |\n  private: true\n---\n", "---\n# private: true\ntitle: Pay\n---\n",
    "---\n? private\n: false\n---\n", '---\n"priv\\u0061te": !!bool "false"\n---\n',
    "---\nprivate: &value no\n---\n", '---\nprivate: "off" # for now\n---\n', "---\nis private: true\n---\n",
    "---\nprivate-notes: true\nprivate_key: a\n---\n",
    "---\ntitle: npm\n---\n\nIn package.json:\n\n    private: true\n\n---\n\nThe end.\n",
    "---\ntitle: npm\n---\n```yaml\n---\nprivate: true\n---\n```\n",
    "---\n\nFirst a break, then code.\n\n```yaml\nprivate: true\n```\n\n---\n",
    "# Front matter\n\n    ---\n    private: true\n    ---\n",
    "# Front matter\n\nA note begins so:\n\n---\nprivate: true\n---\n",
    "---\ntitle: One\n---\nOne.\n\n---\n\nTwo.\n\n---\nprivate: true\n---\n",
    "---\nprivate: no\n---\n# Private\n---\n", "+++\ntitle = 'private = true'\nprivate = false\n+++\n",
    "+++\n# private = true\n+++\nprivate = true\n",
]  # fmt: skip


@pytest.mark.parametrize("text", PRIVATE)
def test_a_note_that_says_so_is_private(text):
    assert is_private(text)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("head", [*SPELLED, *BROKEN])
def test_a_head_says_it_in_any_spelling(head, line_end):
    text = f"---\n{head}\n---\n\nSome text.\n".replace("\n", line_end)
    assert is_private(text)
    assert is_private(f"---\n{head}\n".replace("\n", line_end))


@pytest.mark.parametrize("opening", OPENINGS)
def test_front_matter_that_memd_does_not_read_as_such_says_it_too(opening):
    """Behind a byte order mark, comments and directives, or in a second document."""
    end = "\r" if opening.endswith("\r") else "\n"
    assert is_private(f"{opening}private: true{end}---{end}text")
    assert not is_private(f"{opening}private: false{end}---{end}text")


def test_the_front_matter_of_other_programs_says_it_too():
    """Between lines of `+++` it is TOML; a key of a table counts, since Zola has all of its own in one."""
    for line in ("private = true", 'private="yes"', '"priv\\u0061te" = true', "[extra]\nprivate = true"):
        assert is_private(f"+++\ntitle = 'Pay'\n{line}\n+++\ntext")
    assert not is_private("+++\ntitle = 'Pay'\nprivate = false\n+++\ntext")


@pytest.mark.parametrize("text", OPEN)
def test_a_note_that_does_not_say_so_is_not(text):
    assert not is_private(text)


def test_what_the_reader_of_front_matter_sees_is_private():
    chance = random.Random(6)
    pieces = [*"\n\n\r\t {}[]'\"a", "private", "true", "false", ": ", ":", "\n  ", "\r\n", "? ", "- ", ", "]
    pieces += ["!!str ", "&a ", "*a", "|\n", "# ", "\\u0061", "\u2028", "---", "...", "\n---\n", "title: x\n"]
    pieces += ["\ufeff", "<<", "\u200b", "```", "+++"]
    seen = 0
    for _ in range(many(20_000)):
        start = chance.choice(["", "private: true", '"private": true', "? private\n: true", "private"])
        parts = [
            *chance.choices(pieces, k=chance.randrange(7)),
            start,
            *chance.choices(pieces, k=chance.randrange(7)),
        ]
        head = "".join(parts)
        values = read_front_matter(split_lines(f"---\n{head}\n---\n")).values
        if str(values.get("private", "no")).strip(" \n'\"\u200b\ufeff\u2028") not in {"no", "false"}:
            seen += 1
            assert is_private(f"---\n{head}\n---\n"), head
    assert seen > 100


def test_front_matter_that_is_too_long_is_read_up_to_its_limit():
    """Nobody waits for a note that is all front matter; what is beyond the limit is text to the parser."""
    assert is_private("---\nprivate: true\n" + "a: b\n" * HEAD_CHARS)
    assert not is_private("---\n" + "a: b\n" * HEAD_CHARS + "private: true\n---\n")
    assert is_private("---\n" + "# c\n" * (HEAD_CHARS // 4 - 4) + "private: true\n---\n")


def test_a_hostile_head_takes_no_minutes():
    for piece, around in itertools.product(
        ["[", "? ", "!a ", "{, ", "\\\n", "'-", "<!--"],
        ["---\nprivate: no\n{}\n---\n", "---\n{}private", "+++\nprivate = 0\n{}\n+++\n"],
    ):
        began = time.monotonic()
        is_private(around.replace("{}", piece * (HEAD_CHARS // len(piece) - 10)))
        assert time.monotonic() - began < 30, (piece, around)

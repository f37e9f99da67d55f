"""Globs match as in fnmatch, and no glob keeps a search busy."""

import fnmatch
import random
import time

import pytest
from tests_support import many

from memd.errors import InvalidError
from memd.search import globs

PARTS = [
    *(
        "a", "b", "*", "**", "?", "[ab]", "[!a]", "[z-a]", "[!z-a]", "[a", "]", "/", ".", "é", "(?>",
        "(?!)", "(",
    ),
    *("^", "[^a]", "[\\d]", "[a-]", "&&", "[a&&b]", "[a||b]", "[a~~b]", "\n", "[--a]", "[]]", "[!]]"),
]  # fmt: skip
NAMES = [*"abé/.\\][(?>)!^-&d\n$z|"]


def test_a_glob_matches_what_fnmatch_matches_and_what_is_in_a_folder_of_its_name():
    """Whatever is in it, in thousands of them; RE2 has no word for a few, and those are refused."""
    chance = random.Random(20260101)
    refused, count = 0, many(20_000)
    for _ in range(count):
        glob = "".join(chance.choices(PARTS, k=chance.randint(1, 6)))
        path = "".join(chance.choices(NAMES, k=chance.randint(1, 6)))
        plain = glob.strip("/")
        wanted = fnmatch.fnmatchcase(path, plain) or path == plain or path.startswith(f"{plain}/")
        try:
            assert globs.matching((glob,))(path) is wanted, (glob, path)
        except InvalidError:
            refused += 1
    assert refused < count / 20  # of "(?" in brackets, mostly


def test_any_of_several_globs_suffices():
    """Both Unicode forms of a letter with an accent are equal."""
    matches = globs.matching(("a/*.md", "cafe\u0301/"))
    assert matches("a/x.md")
    assert matches("caf\u00e9/x.txt")
    assert not matches("b/x.md")


@pytest.mark.parametrize("glob", ["*a" * 8 + "b", "**/a/" * 20 + "b", "?" * 500 + "*" + "?" * 500])
def test_no_glob_takes_long(glob):
    """Names that a backtracking engine would need hours for are judged at once."""
    started = time.process_time()
    assert not globs.matching((glob,))("a/" * 60 + "a" * 250)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("paths", [("x" * 1025,), ("x",) * 501, ("[a[[:b:]]",)])
def test_what_cannot_be_matched_is_refused(paths):
    """Too long, too many, or nothing that RE2 can compile."""
    with pytest.raises(InvalidError, match="path: "):
        globs.matching(paths)


def test_a_search_whose_globs_take_too_long_is_given_up(monkeypatch):
    """Each name may take some milliseconds, and a workspace has many names."""
    monkeypatch.setattr(globs, "MAX_SEARCH_S", 0.1)
    matches = globs.matching(tuple(f"*a{'?' * 14}z{number}" for number in range(100)))
    chance = random.Random(1)
    names = ("".join(chance.choices("ab", k=250)) for _ in range(5000))
    started = time.thread_time()
    with pytest.raises(InvalidError, match="took over"):
        list(map(matches, globs.patient(names)))
    assert time.thread_time() - started < 20

"""What is ignored is what git itself ignores: thousands of random patterns, each asked of both."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from tests_support import many

from memd.sources.gitignore import translated
from memd.sources.ignore import Rules

FOLDERS = many(150)  # each with an ignore file of its own
PATHS = 40  # in each
SEED = 20260101
PARTS = [
    *(
        "a", "b", "A", "ab", "*", "**", "***", "?", "/", "/", "/**/", "**/", "/**", "é", "ü?", "ñ", "à", ".",
        "$",
    ),
    *(
        "[ab]", "[!a]", "[^a]", "[a-c]", "[z-a]", "[!z-a]", "[]a]", "[!]]", "[a", "[a-]", "[-a]", "[[]",
        "[a/b]",
    ),
    *(
        "[[:alpha:]]", "[[:digit:]x]", "[![:upper:]]", "[[:space:]]", "[[:foo:]]", "[[:alpha]", "[:a]",
        "[a&&b]",
    ),
    *(r"[\]]", r"[a\-c]", r"\*", r"\?", r"\/", "\\", r"\ ", " ", "  ", "\t", "#", "!", r"\#", r"\!"),
    *("+", "(", "a|b", "{", "^", "-", "1", "\x01", "&&", "a(?>", r"\d"),
]  # fmt: skip
NAMES = [
    *("a", "b", "A", "ab", "aab", "abc", "c", "*", "?", "[", "]", "é", "ü", "üa", "ñ", "à", "à "),
    *(" ", "a ", "a  ", "#a", "!a", "\\", "a\\", "-", "1", "a1", "x", "$", "+", "(", "a|b", "{", "^", "\x01"),
    *("a.b", "\t", "a\t", "\n", "a\nb", "\r", "&&", "&", "[a", "[:a]", "ab c", "d", "a(?>"),
]


def random_pattern(chance: random.Random) -> str:
    pattern = "".join(chance.choices(PARTS, k=chance.choice([1, 1, 2, 2, 3, 3, 4, 5])))
    return (
        ("!" if chance.random() < 0.2 else "")
        + pattern
        + ("/" if chance.random() < 0.2 else "")
        + (" " * chance.randint(1, 3) if chance.random() < 0.15 else "")
        + ("\r" if chance.random() < 0.05 else "")
    )


def random_tree(chance: random.Random, folder: Path) -> list[str]:
    """Make files and folders; return their paths, those of folders with "/" behind."""
    folder.mkdir()
    made = {}
    for _ in range(PATHS):
        path = "/".join(chance.choices(NAMES, k=chance.randint(1, 4)))
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            if chance.random() < 0.3:
                (folder / path).mkdir(exist_ok=True)
                made[f"{path}/"] = None
            else:
                (folder / path).touch()
                made[path] = None
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    # One that was touched while it was a folder is one.
    return sorted(
        {f"{path}/" if (folder / path).is_dir() else path for path in (p.rstrip("/") for p in made)}
    )


def ignored_by_git(root: Path, paths: list[str]) -> set[str]:
    asked = b"\0".join(os.fsencode(path.removesuffix("/")) for path in paths)
    done = subprocess.run(
        ["git", "-C", root, "-c", "core.ignorecase=false", "check-ignore", "--stdin", "-z", "--no-index"],
        input=asked, capture_output=True, check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_git_and_memd_ignore_the_same_paths(tmp_path, seed):
    chance = random.Random(seed)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("b\n!ab\n*c/\n", newline="")
    paths = []
    for number in range(FOLDERS):
        folder = tmp_path / f"folder{number}"
        paths += [f"{folder.name}/{path}" for path in random_tree(chance, folder)]
        lines = [random_pattern(chance) for _ in range(chance.randint(1, 4))]
        (folder / ".gitignore").write_bytes("\n".join(lines).encode() + b"\n" * chance.randint(0, 2))
    theirs = ignored_by_git(tmp_path, paths)
    rules = Rules.load(tmp_path, ["**"], [])
    for path in paths:
        ours = rules.folder(path) is None if path.endswith("/") else not rules.selects(path)
        lines = (tmp_path / path.split("/")[0] / ".gitignore").read_bytes()
        assert ours == (path.removesuffix("/") in theirs), (path, lines)
    assert len(paths) > 20 * FOLDERS
    assert 0.1 < len(theirs) / len(paths) < 0.9


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        (b"\xef\xbb\xbfa.md\n", "a.md"),  # a byte order mark, as Windows' editors write it
        (b"a.md\r\nb.md\r\n", "b.md"),
        (b"caf\xc3\xa9.md\n", "café.md"),
        (b"caf\xe9.md\n", "caf\udce9.md"),  # Latin-1: compared as bytes
        (b"foo/**\n!foo/keep.md\n", "foo/keep.md"),
        (b"foo/*\n!foo/a/\n", "foo/a/x.md"),
        (b"x.md\nfoo/\n!foo/\n", "foo/x.md"),  # a folder that is taken back brings nothing in it back
        (b"\xc3\xa0\n", "à"),  # whose last byte is white space in Latin-1
    ],
)
def test_what_pathspec_alone_would_judge_otherwise(tmp_path, lines, path):
    """Each was found by the test above, or is what people's files hold."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    (tmp_path / ".gitignore").write_bytes(lines)
    ours = Rules.load(tmp_path, ["**"], []).selects(path)
    assert ours != (path in ignored_by_git(tmp_path, [path]))


@pytest.mark.parametrize("line", ["", "   ", "# x", "/", "//", "!", "a\\", "[a", "[[:no:]]", "a//", "\\/a"])
def test_a_line_that_can_match_nothing_is_none(line):
    assert translated(line) is None

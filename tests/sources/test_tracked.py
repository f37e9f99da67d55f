"""What git tracks and ignores is what git itself says, and the rule that makes a file no source."""

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from tests_support import many

from memd.records import SourceText
from memd.sources import tracked
from memd.sources.gitignore import translated
from memd.sources.ignore import Refusal, Rules
from memd.sources.scan import MAX_SOURCE_BYTES, look, refusal_text, walk
from memd.sources.tracked import tracked_in

FILES = ("drafts/kept.md", "drafts/deep/kept.md", "drafts/new.md", "log.md", "new.log.md", "a.md")
TRACKED = (*FILES[:2], "log.md", "a.md")


def git(folder, *arguments):
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def written(folder, paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("text")


def repository(top, *options):
    top.mkdir(parents=True, exist_ok=True)
    git(top, "init", "-q", *options)
    written(top, TRACKED)
    git(top, "add", "-A")
    (top / ".gitignore").write_text("drafts/\n*log.md\n")
    written(top, FILES)


def selected(root, below=""):
    rules = Rules.load(root, ("**/*.md",), ())
    return {path for path in FILES if rules.selects(f"{below}{path}")}


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
def test_a_later_line_of_gitignore_takes_nothing_away(tmp_path, version, options):
    repository(tmp_path, *options)
    git(tmp_path, "update-index", "--index-version", version, "--force-write-index")
    assert selected(tmp_path) == set(TRACKED)


def test_a_repository_inside_of_the_folder(tmp_path):
    repository(tmp_path / "inner/one")
    assert selected(tmp_path, "inner/one/") == set(TRACKED)


def test_a_workspace_inside_of_a_repository(tmp_path):
    repository(tmp_path)
    (tmp_path / "drafts/.gitignore").write_text("*.md\n")
    rules = Rules.load(tmp_path / "drafts", ("**/*.md",), ())
    assert [path for path in ("kept.md", "deep/kept.md", "new.md") if rules.selects(path)] == [
        "kept.md", "deep/kept.md",
    ]  # fmt: skip


def test_another_working_tree(tmp_path):
    repository(tmp_path / "main")
    git(tmp_path / "main", "commit", "-qm", "one")
    git(tmp_path / "main", "worktree", "add", "-q", str(tmp_path / "tree"))
    (tmp_path / "tree/.gitignore").write_text("drafts/\n*log.md\n")
    assert selected(tmp_path / "tree") == set(TRACKED)


def test_memdignore_has_the_last_word(tmp_path):
    repository(tmp_path)
    written(tmp_path, ["memory/config.toml"])
    (tmp_path / "memory/.memdignore").write_text("drafts/\n")
    assert selected(tmp_path) == {"log.md", "a.md"}


def test_no_index_is_trusted(tmp_path):
    repository(tmp_path)
    index = tmp_path / ".git/index"
    whole = index.read_bytes()
    names = tracked_in(str(index), str).files
    assert names == set(TRACKED)
    for end in range(len(whole)):
        index.write_bytes(whole[:end])
        assert tracked_in(str(index), str).files <= names
    index.unlink()
    os.mkfifo(index)
    assert selected(tmp_path) == {"a.md"}


def test_names_that_grow_without_end_are_none(tmp_path):
    """In version 4 each name may repeat the one before."""
    entry = bytes(60) + b"\0\0" + b"\0" + b"a" * 2000 + b"\0"
    (tmp_path / "index").write_bytes(b"DIRC" + (4).to_bytes(4) + (1000).to_bytes(4) + entry * 1000)
    assert tracked_in(str(tmp_path / "index"), str) == tracked.Tracked()


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
        (b"a.md\r", "a.md"),  # the last line, without its line feed
        (b"caf\xc3\xa9.md\n", "café.md"),
        (b"caf\xe9.md\n", "caf\udce9.md"),  # Latin-1: compared as bytes
        (b"foo/**\n!foo/keep.md\n", "foo/keep.md"),
        (b"x**\\/keep.md\n", "xa/b/keep.md"),
        (b"x\\\\ \n", "x\\"),  # an escaped backslash escapes no space behind it
        (b"**\\/keep.md\n", "keep.md"),  # an escaped slash is one that is there
        (b"foo/*\n!foo/a/\n", "foo/a/x.md"),
        (b"x.md\nfoo/\n!foo/\n", "foo/x.md"),  # a folder that is taken back brings nothing in it back
        (b"\xc3\xa0\n", "à"),  # whose last byte is white space in Latin-1
    ],
)
def test_lines_that_are_easily_misread(tmp_path, lines, path):
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


DEFAULT = ("**/*.md", "**/*.markdown")


def looked(root, path, *, patterns=DEFAULT, ignore=()):
    return look(root, path, Rules.load(root, patterns, ignore), now_ns=time.time_ns())


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("path", "reason", "place"),
    [
        ("a.txt", "not-selected", "a.txt"), (".a.md", "hidden", ".a.md"), (".git/x/a.md", "hidden", ".git/"),
        ("memory/.trash/a.md", "hidden", "memory/.trash/"), ("a.md~", "never-read", "a.md~"),
        ("x/node_modules/p/a.md", "machinery", "x/node_modules/"), ("env/lib/a.md", "foreign", "env/"),
        ("other/a.md", "foreign", "other/"), ("p/dist/a.md", "build-output", "p/dist/"),
        ("memory/index/a.md", "own", "memory/index/"), ("memory/config.toml", "own", "memory/config.toml"),
        ("big.md", "too-large", "big.md"), ("latin1.md", "not-utf8", "latin1.md"),
        ("binary.md", "binary", "binary.md"), ("folder.md", "directory", "folder.md"),
        ("memory", "directory", "memory"),
    ],
)  # fmt: skip
def test_each_reason_names_what_is_refused(tmp_path, path, reason, place):
    write(tmp_path, {
        "env/pyvenv.cfg": "", "other/memory/config.toml": "", "p/package.json": "", "memory/config.toml": "",
        "big.md": "x" * (MAX_SOURCE_BYTES + 1), "latin1.md": b"\xff\xfec\0", "binary.md": b"a\0b",
    })  # fmt: skip
    (tmp_path / "folder.md").mkdir()
    if not (tmp_path / path).exists():
        write(tmp_path, {path: "text\n"})
    assert looked(tmp_path, path) == Refusal(reason, place)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("drafts/x.md", ".gitignore:2: drafts/"), ("a/drafts/x.md", ".gitignore:2: drafts/"),
        ("a/b/only.md", "a/.gitignore:4: /b/only.md"), ("a/late.md", "a/.gitignore:5: late.md"),
        ("private.md", "memory/.memdignore:1: private.md"),
        ("old.md", "ignore in memory/config.toml: old.md"),
        ("memory/t/kept.md", "memory/.memdignore:3: kept.md"), ("both.md", "memory/.memdignore:4: both.md"),
    ],
)  # fmt: skip
def test_an_ignored_file_names_the_pattern_and_where_it_stands(tmp_path, path, rule):
    """Comments, blank lines and lines that are no pattern count as lines; our own word is the last."""
    write(tmp_path, {
        ".gitignore": "# all of them\ndrafts/\nlate.md\nboth.md\n",
        "a/.gitignore": "\n[z-a]\n!drafts.md\n/b/only.md\nlate.md\n",
        "memory/.memdignore": "private.md\n\nkept.md\nboth.md\n",
        path: "text\n",
    })  # fmt: skip
    refused = looked(tmp_path, path, ignore=["# no pattern", "old.md"])
    assert (refused.reason, refused.rule) == ("ignored", rule)
    assert refusal_text(refused, path).endswith(f"is ignored by {rule}")


def test_a_pattern_that_takes_back_is_no_refusal(tmp_path):
    write(tmp_path, {".gitignore": "*.md\n", "memory/.memdignore": "!keep.md\n", "keep.md": "x", "b.md": "x"})
    assert isinstance(looked(tmp_path, "keep.md"), SourceText)
    assert looked(tmp_path, "b.md").rule == ".gitignore:1: *.md"


@pytest.mark.parametrize("path", ["nothing.md", "a.md/b.md", "a\0b.md", "x" * 300 + ".md", "\udcff.md"])
def test_what_is_not_there_is_nothing(tmp_path, path):
    write(tmp_path, {"a.md": "x"})
    assert looked(tmp_path, path) is None


def test_what_is_refused_is_what_a_scan_leaves_out(tmp_path):
    write(tmp_path, {
        ".gitignore": "drafts/\n*.tmp.md\n", "a/.gitignore": "!keep.tmp.md\n", "Makefile": "",
        "memory/.memdignore": "/b/\n!build/\n", "bad.md": b"\xff\xfe",
    })  # fmt: skip
    paths = (
        "a.md", "drafts/a.md", "a/keep.tmp.md", "a/x.tmp.md", "b/c.md", "a/b/c.md", "build/a.md", "dist/a.md",
        "memory/dist/a.md", "memory/index/a.md", "node_modules/a.md", "a.txt", ".h/a.md", "late/a.md",
        "a\nb.md",
    )  # fmt: skip
    write(tmp_path, dict.fromkeys(paths, "x"))
    rules = Rules.load(tmp_path, DEFAULT, ["late/"])
    found = {entry[0] for entry in walk(tmp_path, rules) if isinstance(entry, tuple)}
    for path in (str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()):
        seen = look(tmp_path, path, rules, now_ns=time.time_ns())
        assert isinstance(seen, SourceText) == (path in found and path != "bad.md"), (path, seen)

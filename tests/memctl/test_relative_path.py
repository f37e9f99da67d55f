"""--path and PATH arguments count from the current folder, as grep's do; the wire counts from the root."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl import exits, relative_path
from memctl.exits import CommandError


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A workspace with folders of names that are patterns, too."""
    root = tmp_path / "notes"
    for path in ("memory/config.toml", "daily/a.md", "daily/b.md", "daily/[old]/c.md", "[x]/d.md", "e.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize(
    ("cwd", "typed", "sent"),
    [
        (".", "daily/*.md", ["daily/*.md"]), ("daily", "*.md", ["daily/*.md"]),
        ("daily", "daily/*.md", ["daily/daily/*.md"]), ("daily", "../*.md", ["*.md"]),
        ("daily", "a.md", ["daily/a.md"]), ("daily", "./a.md", ["daily/a.md"]), ("daily", "..", []),
        ("daily", ".", ["daily"]), ("daily", "../daily/", ["daily"]), (".", ".", []),
        ("daily/[old]", "*.md", ["daily/[[]old]/*.md"]),
        ("daily", "[old]", ["daily/[[]old]", "daily/[[]old]/*"]),
        (".", "[x]/d.md", ["[[]x]/d.md", "[[]x]/d.md/*"]), (".", "[de].md", ["[de].md"]), ("..", "notes", []),
        ("..", ".", []), ("..", "notes/daily", ["daily"]), ("..", "notes/*.md", ["*.md"]),
        ("..", "*/daily/*.md", ["daily/*.md"]), ("..", "no*", []), ("..", "[mn]ot?s/*.md", ["*.md"]),
        ("..", "**/*.md", ["**/*.md", "*.md"]),
    ],
)  # fmt: skip
def test_a_glob_counts_from_the_current_folder(root, monkeypatch, cwd, typed, sent):
    monkeypatch.chdir(root / cwd)
    assert relative_path.globs([typed], str(root)) == sent


def test_absolute_globs_and_links_to_the_workspace_are_taken(root, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(root)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for folder in (root, "link", tmp_path / "link", "~/notes", "~/link"):
        assert relative_path.globs([f"{folder}/daily/*.md"], str(tmp_path / "link")) == ["daily/*.md"]
        assert relative_path.globs([f"{folder}/daily/a.md"], str(root)) == ["daily/a.md"]


def test_a_folder_around_the_workspace_has_all_of_its_notes(root):
    assert relative_path.globs([".."], str(root)) == []
    assert relative_path.globs(["/*"], str(root)) == []


@pytest.mark.parametrize("typed", ["../*.md", "/etc", "/etc/*.conf", "../notes2/*.md", "../notes2", ""])
def test_a_glob_outside_of_the_workspace_is_refused(root, typed):
    with pytest.raises(CommandError, match=r"is outside the workspace .*/notes\. |is missing") as refused:
        relative_path.globs([typed], str(root))
    assert refused.value.status == exits.USAGE


def test_of_several_globs_any_is_sent(root):
    assert relative_path.globs(["daily", "*.md", "daily"], str(root)) == ["daily", "*.md"]
    assert relative_path.globs(["daily", "."], str(root)) == []


def test_of_several_workspaces_those_without_the_path_are_not_asked(root, tmp_path):
    other = tmp_path / "log"
    (other / "memory").mkdir(parents=True)
    (other / "memory" / "config.toml").write_text("")
    both = [str(root), str(other)]
    assert relative_path.globs_of_each(["daily/*.md"], both) == [["daily/*.md"], None]
    assert relative_path.globs_of_each(["daily", "../log/x.md"], both) == [["daily"], ["x.md"]]
    assert relative_path.globs_of_each([".."], both) == [[], []]
    assert relative_path.globs_of_each([], both) == [[], []]
    with pytest.raises(CommandError, match="outside all workspaces that are searched"):
        relative_path.globs_of_each(["daily", "/etc"], both)


SIGNS = st.text("ab*?[]!", min_size=1, max_size=8)
NAMES = st.text("ab[", min_size=1, max_size=4)


@given(above=SIGNS, below=SIGNS, root=NAMES, name=NAMES)
def test_a_glob_and_what_is_left_of_it_match_the_same_paths(above, below, root, name):
    """What remains behind the root matches a name exactly where the whole matches root and name."""
    left = relative_path._rest(f"/{above}/{below}", f"/{root}") or []
    whole = fnmatch.fnmatchcase(root, above) and fnmatch.fnmatchcase(name, below)
    assert any(fnmatch.fnmatchcase(name, one) for one in left) == whole


def test_a_pattern_that_the_shell_expanded_is_noticed(root, monkeypatch):
    assert relative_path.expanded_by_the_shell(["daily/a.md"], ["daily/b.md", "x"]) == "daily/*.md"
    assert relative_path.expanded_by_the_shell(["daily/a.md"], ["daily/c.md", "e.md", "memory"]) is None
    assert relative_path.expanded_by_the_shell(["daily"], ["memory"]) is None
    assert relative_path.expanded_by_the_shell([], ["daily/a.md", "daily/b.md"]) is None


@pytest.mark.parametrize(
    ("cwd", "typed", "path"),
    [
        (".", "daily/a.md", "daily/a.md"), ("daily", "a.md", "daily/a.md"), ("daily", "../e.md", "e.md"),
        ("daily", "gone.md", "daily/gone.md"), ("..", "notes/e.md", "e.md"), ("..", "notes", "."),
    ],
)  # fmt: skip
def test_a_note_is_named_from_the_current_folder(root, monkeypatch, cwd, typed, path):
    monkeypatch.chdir(root / cwd)
    assert relative_path.source(typed, str(root)) == path
    assert relative_path.source(f"{root / cwd}/{typed}", str(root / "daily")) == path


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("On herons", "On herons"), ("TCP/IP 2.0", "TCP/IP 2.0"), ("gone.md", "daily/gone.md"),
        ("../gone", "gone"), ("[old]", "daily/[old]"),
    ],
)  # fmt: skip
def test_a_title_is_the_same_in_every_folder(root, monkeypatch, typed, sent):
    """What is written as a path, or is there, is none."""
    monkeypatch.chdir(root / "daily")
    assert relative_path.source(typed, str(root), titled=True) == sent


def test_a_path_from_the_root_is_refused_elsewhere_with_the_one_from_here(root, monkeypatch):
    """Two folders may hold the same name: what is meant is what a shell would open."""
    monkeypatch.chdir(root / "daily")
    with pytest.raises(CommandError, match=r"daily/a\.md of the workspace is a\.md$") as refused:
        relative_path.source("daily/a.md", str(root))
    assert refused.value.status == exits.NOT_FOUND
    monkeypatch.chdir(root.parent)
    with pytest.raises(CommandError, match=r"e\.md of the workspace is notes/e\.md$"):
        relative_path.source("e.md", str(root))


def test_a_note_outside_of_the_workspace_is_refused(root):
    """Exit code 2; `why` says of it that it is outside."""
    with pytest.raises(CommandError, match=r"/outside\.md is outside the workspace .*/notes: ") as refused:
        relative_path.source("../outside.md", str(root))
    assert refused.value.status == exits.USAGE
    assert relative_path.source("../o.md", str(root), outside=True) == f"{root.parent}/o.md"


@pytest.mark.parametrize("typed", ["ada@laptop:notes/queue.md", "ada@laptop:notes/queue.md:3-5"])
def test_a_note_of_the_team_is_not_looked_for_here(root, typed):
    """As a search of the team prints it: the error says what works. A file with such a name is a note."""
    for titled in (False, True):
        with pytest.raises(
            CommandError, match=r"is a note of the team: .* on laptop\. .*recall --team"
        ) as caught:
            relative_path.source(typed, str(root), titled=titled)
        assert caught.value.status == exits.NOT_FOUND
    assert relative_path.source("ada@laptop:a/b title", str(root), titled=True) == "ada@laptop:a/b title"
    (root / "ada@laptop:notes").mkdir()
    (root / typed).write_text("")
    assert relative_path.source(typed, str(root)) == typed


def test_the_uri_of_a_resource_is_no_path_of_this_folder(root):
    assert relative_path.source("memory:///a%20b.md", str(root), titled=True) == "memory:///a%20b.md"

"""Paths: those of memd's own files, those that a user types, and the workspace that is meant."""

import errno
import fnmatch
import json
import os
import sys
from pathlib import Path

import pytest
from daemon_process import folder_of
from hypothesis import example, given
from hypothesis import strategies as st

from memctl import exits, paths, relative_path, workspaces
from memctl.commands.get import place_of
from memctl.exits import CommandError
from memctl.paths import (
    PathError,
    check_private_dir,
    config_dir,
    make_private_dir,
    reason_and_cure,
    runtime_dir,
    socket_path,
    state_dir,
)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in ("MEMD_SOCKET", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")


def test_the_socket_lies_in_the_users_runtime_directory(monkeypatch, tmp_path):
    for runtime in (tmp_path, tmp_path / "later"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        assert (socket_path(), paths.runtime_fault()) == (runtime / "memd/memd.sock", "")


@pytest.mark.parametrize(
    ("runtime", "uid", "fault"),
    [
        ("/run/user/4000000", os.getuid(), "is gone"),
        ("{here}", 4_000_000, "belongs to"),
        ("{here}/file/run", os.getuid(), "cannot be used (Not a directory)"),
    ],
)
def test_a_runtime_directory_that_is_gone_or_of_another_user_is_as_none(
    monkeypatch, tmp_path, runtime, uid, fault
):
    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime.format(here=tmp_path))
    assert f" {fault}" in paths.runtime_fault()
    assert runtime_dir() == Path(f"/tmp/memd-{uid}")


def test_without_a_runtime_directory_each_user_has_a_folder_among_temporary_files(monkeypatch):
    """The user's number keeps two users apart."""
    assert socket_path() == Path(f"/tmp/memd-{os.getuid()}/memd.sock")
    monkeypatch.setenv("TMPDIR", "/var/folders/x")
    assert runtime_dir() == Path(f"/var/folders/x/memd-{os.getuid()}")


def test_a_file_of_others_at_the_sockets_path_is_not_to_be_moved(tmp_path):
    for name, cure in (("memd.sock", "mv "), ("passwd", "export MEMD_SOCKET=/tmp/memd-")):
        (tmp_path / name).touch()
        with pytest.raises(PathError, match=f"is a file and not a socket: {cure}"):
            paths.check_socket(tmp_path / name)


def test_a_relative_socket_in_a_deleted_folder_is_told(monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("MEMD_SOCKET", "y.sock")
    with pytest.raises(PathError, match=r"MEMD_SOCKET=y\.sock .*deleted"):
        socket_path()


def test_memd_socket_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    monkeypatch.setenv("MEMD_SOCKET", "/x/y.sock")
    assert socket_path() == Path("/x/y.sock")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMD_SOCKET", "y.sock")
    assert socket_path() == tmp_path / "y.sock"


def test_state_and_configuration_follow_xdg(monkeypatch):
    monkeypatch.setattr(paths, "_MACOS", False)
    assert state_dir() == Path("/home/ada/.local/state/memd")
    assert config_dir() == Path("/home/ada/.config/memd")
    monkeypatch.setattr(paths, "_MACOS", True)
    assert state_dir() == Path("/home/ada/Library/Application Support/memd")
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    assert (state_dir(), config_dir()) == (Path("/s/memd"), Path("/c/memd"))


def test_relative_and_empty_variables_are_ignored(monkeypatch):
    monkeypatch.setattr(paths, "_MACOS", False)
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    assert (state_dir(), config_dir()) == (
        Path("/home/ada/.local/state/memd"),
        Path("/home/ada/.config/memd"),
    )


def test_a_socket_path_that_no_system_takes_is_refused_with_a_way_out(monkeypatch):
    """103 bytes are possible, 104 are not, and bytes are counted, not characters."""
    monkeypatch.setenv("MEMD_SOCKET", "/" + "x" * 102)
    assert len(str(socket_path())) == 103
    monkeypatch.setenv("MEMD_SOCKET", "/" + "é" * 52)
    with pytest.raises(PathError, match=r"105 bytes, more than 103.*export MEMD_SOCKET=/tmp/memd-"):
        socket_path()


def test_a_private_directory_is_made_for_the_user_alone(tmp_path):
    before = os.umask(0)
    make_private_dir(tmp_path / "a" / "b")
    make_private_dir(tmp_path / "a" / "b")
    os.umask(before)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_a_directory_open_to_others_is_refused_with_its_cure(tmp_path, mode):
    place = tmp_path / "memd it's open"
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(PathError, match=f"mode {mode:04o}") as caught:
        check_private_dir(place)
    assert os.system(str(caught.value).rpartition("): ")[2]) == 0
    check_private_dir(place)


def test_a_link_and_a_file_are_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").touch()
    with pytest.raises(PathError, match="symbolic link"):
        make_private_dir(tmp_path / "link")
    with pytest.raises(PathError, match="not a directory"):
        make_private_dir(tmp_path / "file")


def test_another_users_directory_is_refused(tmp_path, monkeypatch):
    place = tmp_path / "memd"
    place.mkdir(mode=0o700)
    owner = place.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(PathError, match=f"belongs to uid {owner}.*Be that user, or choose another") as caught:
        check_private_dir(place)
    assert "chown" not in str(caught.value)
    tmp_path.chmod(0o777)
    with pytest.raises(PathError, match="sudo rm -r"):
        check_private_dir(place)


def test_another_place_is_one_that_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    error = OSError(errno.EROFS, "Read-only file system")
    assert 'export XDG_STATE_HOME="$HOME/memd-state"' in reason_and_cure(state_dir(), error)
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith(str(tmp_path)))
    assert f"export XDG_STATE_HOME=/var/tmp/memd-state-{os.getuid()}" in reason_and_cure(state_dir(), error)


def test_a_device_is_removed_by_nobody(monkeypatch):
    """As root of an account whose home is /dev/null."""
    monkeypatch.setenv("HOME", "/dev/null")
    error = OSError(errno.ENOTDIR, "Not a directory")
    assert "/dev/null is a device: export XDG_STATE_HOME=/" in reason_and_cure(state_dir(), error)


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PathError, match=f"can't make {tmp_path}/file/memd"):
        make_private_dir(tmp_path / "file" / "memd")


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_folder_of_other_things_is_never_told_to_become_private(tmp_path, mode):
    """MEMD_SOCKET=/tmp/memd.sock: the cure is another folder, not chmod or chown of that one."""
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(
        PathError, match=r"not a folder for memd only.*export MEMD_SOCKET=/tmp/memd-"
    ) as caught:
        check_private_dir(place)
    assert "chmod" not in str(caught.value)


def test_a_user_without_a_home_is_told_to_name_one(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    with pytest.raises(PathError, match="export HOME="):
        state_dir()


@pytest.mark.parametrize(
    "typed", ["caf\u00e9/m\u00fcsli.md", "cafe\u0301/m\u00fcsli.md", "caf\u00e9/mu\u0308sli.md"]
)
def test_a_name_is_found_in_the_form_that_the_disk_has(tmp_path, typed):
    folder = tmp_path / "cafe\u0301"
    folder.mkdir()
    (folder / "mu\u0308sli.md").touch()
    assert paths.as_on_disk(f"{tmp_path}/{typed}") == f"{folder}/mu\u0308sli.md"
    assert paths.as_on_disk(f"{tmp_path}/caf\u00e9/n\u00e9e.md") == f"{folder}/n\u00e9e.md"
    assert paths.as_on_disk(f"{tmp_path}/r\u00e9/a.md") == f"{tmp_path}/r\u00e9/a.md"


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
    other = folder_of(tmp_path / "log", {"memory/config.toml": ""})
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
@example("?[", "]?", "[", "[")
@example("???[", "[]", "[", "[[")
def test_a_glob_and_what_is_left_of_it_match_the_same_paths(above, below, root, name):
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


@pytest.fixture
def root_of_workspaces(tmp_path, monkeypatch):
    """A folder that was initialised, with a note; nothing in the environment."""
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    return folder_of(tmp_path / "notes", {"memory/config.toml": "", "daily/a.md": "one\n"})


def test_the_nearest_folder_above_that_was_initialised_is_the_workspace(root_of_workspaces, monkeypatch):
    for below in (root_of_workspaces, root_of_workspaces / "daily", root_of_workspaces / "memory"):
        monkeypatch.chdir(below)
        assert workspaces.find(None) == str(root_of_workspaces)


def test_an_inner_workspace_wins_over_an_outer_one(root_of_workspaces, monkeypatch):
    inner = folder_of(root_of_workspaces / "daily" / "project", {"memory/config.toml": ""})
    monkeypatch.chdir(inner)
    assert workspaces.find(None) == str(inner)


def test_the_option_wins_over_the_environment_and_that_over_the_folder(
    root_of_workspaces, tmp_path, monkeypatch
):
    monkeypatch.chdir(root_of_workspaces)
    monkeypatch.setenv("MEMD_WORKSPACE", str(tmp_path / "env"))
    assert workspaces.find(None) == str(tmp_path / "env")
    assert workspaces.find("daily/..") == str(root_of_workspaces)


def test_an_empty_variable_is_no_workspace(root_of_workspaces, monkeypatch):
    monkeypatch.chdir(root_of_workspaces)
    monkeypatch.setenv("MEMD_WORKSPACE", "")
    assert workspaces.find(None) == str(root_of_workspaces)


def test_a_workspace_without_its_configuration_is_the_registered_one(
    root_of_workspaces, tmp_path, monkeypatch
):
    """As after `git clean`; of two, that around the folder."""
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (root_of_workspaces / "memory" / "config.toml").unlink()
    state = folder_of(tmp_path / "state" / "memd", {})
    state.chmod(0o700)
    roots = [{"root": str(tmp_path / name)} for name in ("notes", "note")]
    (state / "workspaces.json").write_text(json.dumps({"workspaces": roots}))
    monkeypatch.chdir(root_of_workspaces / "daily")
    assert workspaces.find(None) == str(root_of_workspaces)


def test_an_empty_path_is_not_the_current_folder(root_of_workspaces, monkeypatch):
    """A shell leaves it for "$NOTES" where that is not set."""
    monkeypatch.chdir(root_of_workspaces)
    for refused in (workspaces.find, workspaces.absolute):
        with pytest.raises(CommandError, match="is empty"):
            refused("")


def test_a_tilde_that_no_shell_expanded_is_the_home_folder(monkeypatch, tmp_path):
    """Agents' JSON configurations and --workspace=~/x reach us with the tilde."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert workspaces.find("~/x") == str(tmp_path / "x")


def test_a_git_worktree_inside_of_its_main_one_is_no_workspace_of_its_own(tmp_path, monkeypatch):
    """Unless it is registered. One beside it is, but commands in it are for the main one's notes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    main, beside = tmp_path / "main", tmp_path / "beside"
    inside = main / ".claude/worktrees/inside"
    for root in (main, beside, inside):
        folder_of(root, {"memory/config.toml": "", "docs/a.md": "# A\n"})
    (main / ".git").mkdir()
    for root, name in ((beside, str(main)), (inside, "../../..")):
        (root / ".git").write_text(f"gitdir: {name}/.git/worktrees/{root.name}\n")
    assert workspaces.above(inside / "docs") == workspaces.above(main / "docs") == str(main)
    assert workspaces.above(beside / "docs") == str(beside)
    assert workspaces.around(f"{beside}/docs") == workspaces.around(f"{main}/docs") == str(main)
    for root in (inside, beside):
        folder_of(tmp_path / "memd", {"workspaces.json": f'{{"workspaces": [{{"root": "{root}"}}]}}'})
        assert workspaces.around(f"{root}/docs") == workspaces.above(root / "docs") == str(root)
    (main / "memory/config.toml").unlink()
    assert workspaces.around(f"{main}/docs") is None


def test_without_a_workspace_the_error_says_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    folder = tmp_path / "my notes"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(CommandError, match=r"memctl init '.*my notes'") as refused:
        workspaces.find(None)
    monkeypatch.setenv("HOME", str(folder))  # which `memctl init` refuses
    with pytest.raises(CommandError, match=r"memctl init DIR\. "):
        workspaces.find(None)
    assert refused.value.status == exits.WORKSPACE


def test_a_folder_named_memory_config_toml_is_no_workspace(tmp_path):
    (tmp_path / "memory" / "config.toml").mkdir(parents=True)
    assert workspaces.above(tmp_path) is None


def test_a_deleted_current_folder_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(CommandError, match="no longer exists"):
        workspaces.find(None)


@pytest.mark.skipif(sys.platform == "darwin", reason="its file system takes UTF-8 names alone")
def test_a_folder_whose_name_is_no_text_is_refused(tmp_path, monkeypatch):
    """The wire is UTF-8: the name is shown escaped."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    folder_of(folder, {"memory/config.toml": ""})
    monkeypatch.delenv("MEMD_WORKSPACE", raising=False)
    monkeypatch.chdir(folder)
    with pytest.raises(CommandError, match="not UTF-8"):
        workspaces.find(None)


@pytest.mark.parametrize(
    ("cwd", "source", "place"),
    [
        (".", "daily/a.md", {"path": "daily/a.md"}),
        ("daily", "a.md", {"path": "daily/a.md"}),
        ("daily", "../daily/a.md:2", {"path": "daily/a.md", "start_line": 2, "end_line": 2}),
        (".", "daily/a.md:2-5", {"path": "daily/a.md", "start_line": 2, "end_line": 5}),
        (".", "daily/a.md:2:7:text: of vimgrep", {"path": "daily/a.md", "start_line": 2, "end_line": 2}),
        ("..", "notes/daily/a.md", {"path": "daily/a.md"}),
        (".", "gone.md", {"path": "gone.md"}),
        (".", "x:1", {"path": "x:1"}),
    ],
)
def test_a_source_is_named_from_here(root_of_workspaces, monkeypatch, cwd, source, place):
    """What search prints can be pasted after get, in each of its forms, with or without lines."""
    (root_of_workspaces / "x:1").write_text("a file with a colon in its name\n")
    monkeypatch.chdir(root_of_workspaces / cwd)
    assert place_of(source, str(root_of_workspaces / "daily")) == place


def test_an_absolute_path_is_taken_relative_to_the_root(root_of_workspaces, tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(root_of_workspaces)
    monkeypatch.chdir(tmp_path)
    for folder in (root_of_workspaces, link):
        assert place_of(f"{folder}/daily/a.md:1", str(link))["path"] == "daily/a.md"


def test_a_folder_that_may_not_be_entered_is_no_workspace(root_of_workspaces, tmp_path, monkeypatch):
    """What the system forbids to look at is passed by, and the search goes on above."""
    locked = tmp_path / "locked"
    monkeypatch.setattr(os, "stat", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "locked")))
    assert workspaces.above(locked) is None

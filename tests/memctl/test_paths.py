import errno
import os
from pathlib import Path

import pytest

from memctl import paths
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
    """In a shared folder it is removed; in another's own folder nothing is taken from that user."""
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
    """Each part of a path for itself; what is not there stays as typed, in a folder that is there."""
    folder = tmp_path / "cafe\u0301"
    folder.mkdir()
    (folder / "mu\u0308sli.md").touch()
    assert paths.as_on_disk(f"{tmp_path}/{typed}") == f"{folder}/mu\u0308sli.md"
    assert paths.as_on_disk(f"{tmp_path}/caf\u00e9/n\u00e9e.md") == f"{folder}/n\u00e9e.md"
    assert paths.as_on_disk(f"{tmp_path}/r\u00e9/a.md") == f"{tmp_path}/r\u00e9/a.md"

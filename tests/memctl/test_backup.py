"""`memctl backup` and `restore`: settings, the list of workspaces and journals, from one home to another."""

import json
import shutil
import stat

import pytest
from daemon_process import Daemon

from memctl import exits


@pytest.fixture
def first(tmp_path):
    """A home with two workspaces, settings of its own, and an entry that is in the journal."""
    (tmp_path / "first").mkdir()
    daemon = Daemon(tmp_path / "first")
    config = daemon.home / "config" / "memd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('allow_remote = false  # a comment\n[openai."http://127.0.0.1:8080"]\napi_key = "k"\n')
    daemon.start()
    for name in ("notes", "work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}\n\nA heron.\n")
        daemon.add(tmp_path / name)
    (tmp_path / "notes/memory/.memdignore").write_text("drafts/\n")
    added = daemon.memctl("add", "--topic", "t", "--title", "Port", "It is 5433.", cwd=tmp_path / "notes")
    assert added.returncode == exits.OK, added.stderr
    yield daemon
    daemon.close()


@pytest.fixture
def second(tmp_path):
    """An empty home."""
    (tmp_path / "second").mkdir()
    daemon = Daemon(tmp_path / "second")
    yield daemon
    daemon.close()


def test_another_home_has_the_same_settings_workspaces_and_journals(first, second, tmp_path):
    """Byte by byte; a folder that is missing is named, and the rest is restored."""
    kept = tmp_path / "kept.json"
    made = first.memctl("backup", str(kept))
    assert made.returncode == exits.OK, made.stderr
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    first.stop()
    shutil.rmtree(tmp_path / "work")
    (tmp_path / "notes/memory/config.toml").unlink()
    done = second.memctl("restore", str(kept), "--yes")
    assert done.returncode == exits.NOT_FOUND
    assert "work is missing and not registered" in done.stderr
    settings = "config/memd/config.toml"
    assert (second.home / settings).read_bytes() == (first.home / settings).read_bytes()
    assert stat.S_IMODE((second.home / settings).stat().st_mode) == 0o600
    assert (tmp_path / "notes/memory/.memdignore").read_text() == "drafts/\n"
    listed = json.loads(second.memctl("workspaces", "list", "--json").stdout)
    assert [one["root"] for one in listed["workspaces"]] == [str(tmp_path / "notes")]
    assert second.memctl("index", "-w", str(tmp_path / "notes")).returncode == exits.OK
    journal = second.memctl("journal", "-w", str(tmp_path / "notes"))
    assert "Port" in journal.stdout, journal.stderr


def test_settings_that_differ_are_replaced_only_by_force_and_kept(first, second, tmp_path):
    """Nothing is written without it, not even what is missing."""
    kept = tmp_path / "kept.json"
    assert first.memctl("backup", str(kept)).returncode == exits.OK
    config = second.home / "config/memd/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("allow_remote = true\n")
    refused = second.memctl("restore", str(kept), "--yes")
    assert refused.returncode == exits.REFUSED
    assert "config.toml: exists with other content" in refused.stderr
    assert not (second.state / "journal").exists()
    done = second.memctl("restore", str(kept), "--yes", "--force")
    assert done.returncode == exits.OK, done.stderr
    assert config.read_bytes() == (first.home / "config/memd/config.toml").read_bytes()
    assert config.with_name("config.toml.before-memd").read_text() == "allow_remote = true\n"
    again = second.memctl("restore", str(kept), "--yes")
    assert (again.returncode, "write" in again.stdout) == (exits.OK, False)


def test_settings_are_not_written_through_a_link_out_of_a_workspace(first, second, tmp_path):
    kept = tmp_path / "kept.json"
    assert first.memctl("backup", str(kept)).returncode == exits.OK
    first.stop()
    (tmp_path / "work/memory").rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/config.toml").unlink()
    (tmp_path / "work/memory").symlink_to(tmp_path / "elsewhere")
    done = second.memctl("restore", str(kept), "--yes")
    assert (done.returncode, "link out of" in done.stderr) == (exits.REFUSED, True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_backup_is_not_written_over_a_file(first, tmp_path):
    (tmp_path / "kept.json").write_text("mine\n")
    done = first.memctl("backup", str(tmp_path / "kept.json"))
    assert done.returncode == exits.USAGE
    assert (tmp_path / "kept.json").read_text() == "mine\n"


@pytest.mark.parametrize(("command", "status"), [("backup", exits.STORAGE), ("restore", exits.NOT_FOUND)])
def test_a_file_in_no_folder_is_named_with_the_reason(first, tmp_path, command, status):
    """And no advice about memd's own paths, which would not help."""
    done = first.memctl(command, str(tmp_path / "none/kept.json"))
    assert done.returncode == status
    assert "none/kept.json: No such file or directory" in done.stderr
    assert "export" not in done.stderr


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("no JSON", "is not a backup"),
        ('{"format": 99, "memd": "9.0"}', "newer memctl (9.0)"),
        (
            '{"format": 1, "config": null, "workspaces": [], "journals": {"../../x.jsonl": ""}}',
            "not a backup",
        ),
        (
            '{"format": 1, "config": null, "workspaces": [{"root": "notes", "files": {}}], "journals": {}}',
            "not a",
        ),
    ],
)
def test_another_file_is_refused_before_anything_is_written(second, tmp_path, wrong, said):
    """With the reason; a name in it cannot lead out of the folder of journals."""
    (tmp_path / "kept.json").write_text(wrong)
    done = second.memctl("restore", str(tmp_path / "kept.json"), "--yes")
    assert done.returncode == exits.USAGE
    assert said in done.stderr
    assert not second.state.exists()


def test_without_a_terminal_restore_asks_for_yes(first, second, tmp_path):
    kept = tmp_path / "kept.json"
    assert first.memctl("backup", str(kept)).returncode == exits.OK
    done = second.memctl("restore", str(kept), stdin=-3)
    assert done.returncode == exits.USAGE
    assert "pass --yes" in done.stderr
    assert f"register: {tmp_path / 'notes'}" in done.stdout
    assert not second.state.exists()

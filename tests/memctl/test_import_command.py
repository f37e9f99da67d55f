"""The command `memctl import`: what it prints, that its pages are found, and that it follows what grows."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import forked
import pytest
from daemon_process import Daemon, until
from patience import PATIENCE

from memctl import exits
from memctl.commands import COMMANDS
from memd.imports.run import CLIENTS, MEMORIES

FIXTURES = Path(__file__).parents[1] / "imports" / "fixtures"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A running daemon with a workspace, and a home with a session of Claude Code's."""
    home = tmp_path_factory.mktemp("import")
    (home / "notes").mkdir()
    daemon = Daemon(home)
    daemon.start()
    daemon.root = Path(daemon.add(home / "notes"))
    yield daemon
    daemon.close()


@pytest.fixture
def sessions(daemon, tmp_path):
    """A folder of Claude Code's with one session; afterwards the archive is empty."""
    folder = tmp_path / "projects"
    shutil.copytree(FIXTURES / "claude-code", folder)
    yield folder
    shutil.rmtree(daemon.root / "memory" / "archives", ignore_errors=True)


def test_the_command_knows_every_client():
    """The client's list, which imports nothing of memd, is the one of the program."""
    from importlib import import_module

    command = import_module("memctl.commands.import")
    assert (tuple(CLIENTS), tuple(MEMORIES)) == (command.CLIENTS, command.MEMORIES)
    assert "import" in COMMANDS


def following(daemon, *words):
    """Start an import that goes on; it prints what it did as lines of JSON."""
    return forked.popen(
        [sys.executable, "-m", "memctl", "import", *map(str, words), "--follow", "--json"],
        env=daemon.environment, cwd=daemon.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_what_was_imported_is_found_by_its_words(daemon, sessions):
    done = daemon.memctl("import", "claude-code", sessions, cwd=daemon.root)
    assert done.returncode == exits.OK, done.stderr
    assert "1 conversation of claude-code in memory/archives/claude-code: 1 new" in done.stdout
    found = json.loads(daemon.memctl("search", "--sync", "--json", "memory alarms", cwd=daemon.root).stdout)
    [hit] = found["hits"][:1]
    assert hit["path"].startswith("memory/archives/claude-code/2026/2026-11-22-why-did-we-leave")
    assert hit["title"].startswith("Why did we leave the old queue?")
    recalled = daemon.call("recall", workspace=str(daemon.root), query="memory alarms", budget_tokens=500)
    assert recalled["sources"][0]["origin"] == "agent"


def test_the_default_folder_is_the_clients_own(daemon, sessions, monkeypatch):
    """CLAUDE_CONFIG_DIR moves it, as for the client."""
    monkeypatch.setitem(daemon.environment, "CLAUDE_CONFIG_DIR", str(sessions.parent))
    done = daemon.memctl("import", "claude-code", "--dry-run", "--json", cwd=daemon.root)
    report = json.loads(done.stdout)
    assert report["sandbox"][0] == "privileges"
    assert len(report["new"]) == 1
    assert report["dry_run"] is True
    assert not (daemon.root / "memory" / "archives").exists()


def test_what_was_left_alone_and_skipped_is_told_on_stderr(daemon, sessions):
    daemon.memctl("import", "claude-code", sessions, cwd=daemon.root)
    [page] = (daemon.root / "memory/archives").rglob("*.md")
    page.write_text(page.read_text() + "mine\n")
    with next(sessions.rglob("*.jsonl")).open("a") as stream:
        stream.write("{broken\n")
    done = daemon.memctl("import", "claude-code", sessions, cwd=daemon.root)
    assert done.returncode == exits.OK
    assert "left alone: memory/archives/claude-code/2026/" in done.stderr
    assert "was changed by hand" in done.stderr
    assert "line is not JSON (line 21)" in done.stderr
    assert "not all of: " in done.stderr
    assert "skipped" not in done.stderr  # the file was imported


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["claude-code", "nowhere"], exits.NOT_FOUND, "nowhere does not exist"),
        (["chatgpt", "--dry-run", "nowhere"], exits.NOT_FOUND, "nowhere does not exist"),
        (["claude-code", "."], exits.NONE, "no file of claude-code's in"),
        (["chatgpt", "foreign.md"], exits.NONE, "skipped: "),
        (["nobody"], exits.USAGE, "claude-code"),
        (["chatgpt"], exits.USAGE, "which export?"),
        ([], exits.USAGE, "are required: CLIENT\n"),
        (["chatgpt", "x.zip", "--follow"], exits.USAGE, "files that grow"),
        (["claude-code", "--follow", "--dry-run"], exits.USAGE, "files that grow"),
        (["openclaw", "--project", "."], exits.USAGE, "claude-code, codex"),
        (["gemini"], exits.USAGE, "memctl import gemini --memory"),
        (["openclaw", "--memory"], exits.USAGE, "of openclaw leave it out"),
        (["codex", "--all-projects"], exits.USAGE, "goes with --memory"),
        (["codex", "--memory", "--with-tools"], exits.USAGE, "notes have neither"),
        (["codex", "--memory", "--all-projects", "--project", "."], exits.USAGE, "not both"),
        (["cursor", "--memory", "--all-projects"], exits.USAGE, "--project DIR"),
        (["codex", "--memory", "--follow", "--dry-run"], exits.USAGE, "nothing would be written"),
        (["cursor", "--memory"], exits.NONE, "no file of cursor's in"),
        (["letta"], exits.NONE, "/.letta/agents/*/memory: name one"),
        (["claude-code", ".", "-w", "/"], exits.WORKSPACE, "memctl init"),
    ],
)
def test_what_cannot_be_imported_says_why(daemon, tmp_path, argv, status, said):
    (daemon.root / "foreign.md").write_text("No export.\n")
    done = daemon.memctl("import", *argv, cwd=daemon.root)
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr


def test_files_that_are_skipped_for_one_reason_are_one_line(daemon, tmp_path):
    for number in range(30):
        (tmp_path / f"{number}.json").write_text('{"name": "x"}')
    done = daemon.memctl("import", "chatgpt", tmp_path, cwd=daemon.root)
    assert done.returncode == exits.NONE
    assert f"not all of: {tmp_path}/0.json and 29 others: " in done.stderr
    assert done.stderr.count("not all of") == 1


def test_only_what_has_changed_is_told_while_it_is_followed(daemon, sessions, tmp_path):
    """A session of another project may grow as it likes."""
    process = following(daemon, "claude-code", sessions, "--project", "/home/ada/project")
    try:
        assert len(json.loads(process.stdout.readline())["new"]) == 1
        said = {"type": "user", "cwd": "/elsewhere", "message": {"content": "first"}}
        (sessions / "other.jsonl").write_text(json.dumps(said) + "\n")
        time.sleep(3)
        (sessions / "new.jsonl").write_text(json.dumps(said | {"cwd": "/home/ada/project/inner"}) + "\n")
        [new] = json.loads(process.stdout.readline())["new"]
        assert "first" in (daemon.root / new).read_text()
    finally:
        process.terminate()
        process.communicate(timeout=30 * PATIENCE)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_running_session_is_followed_until_a_signal(daemon, sessions, sent):
    process = following(daemon, "claude-code", sessions)
    [page] = json.loads(process.stdout.readline())["new"]
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    text = "The zebra crossing is repainted on Tuesday."
    record = {
        "type": "user",
        "timestamp": "2026-11-22T10:00:00Z",
        "message": {"role": "user", "content": text},
    }
    with next(sessions.rglob("*.jsonl")).open("a") as stream:
        stream.write(json.dumps(record) + "\n")
    assert json.loads(process.stdout.readline())["grown"] == [page]
    assert text in (daemon.root / page).read_text()
    process.send_signal(sent)
    _, err = process.communicate(timeout=30 * PATIENCE)
    assert b"Traceback" not in err
    assert process.returncode == (exits.INTERRUPTED if sent == signal.SIGINT else -sent)
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@pytest.fixture
def notes(daemon, tmp_path, monkeypatch):
    """Claude Code's own notes about the workspace; afterwards the archive is empty."""
    monkeypatch.setitem(daemon.environment, "CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    name = re.sub("[^a-zA-Z0-9]", "-", str(daemon.root))
    folder = tmp_path / "claude/projects" / name / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("- [queue](queue.md)\n")
    (folder / "queue.md").write_text(
        "---\nname: the queue\nkind: project\n---\nLeft for its memory alarms.\n"
    )
    yield folder
    shutil.rmtree(daemon.root / "memory" / "archives", ignore_errors=True)


def test_a_clients_own_notes_are_found_until_it_deletes_them(daemon, notes):
    done = daemon.memctl("import", "claude-code", "--memory", "--json", cwd=daemon.root)
    assert done.returncode == exits.OK, done.stderr
    report = json.loads(done.stdout)
    assert (report["folder"], len(report["new"])) == ("memory/archives/claude-code-memory", 2)
    assert report["sandbox"][0] == "privileges"
    asked = ("search", "--sync", "--json", "memory alarms", "--path", "memory/archives/**")
    [hit] = json.loads(daemon.memctl(*asked, cwd=daemon.root).stdout)["hits"][:1]
    assert (hit["path"] in report["new"], hit["title"]) == (True, "the queue")
    (notes / "queue.md").unlink()
    done = daemon.memctl("import", "claude-code", "--memory", cwd=daemon.root)
    assert f"gone: {hit['path']}\n1 note of claude-code" in done.stdout
    assert "0 new, 0 grown, 1 gone, 1 unchanged" in done.stdout
    found = json.loads(daemon.memctl(*asked, cwd=daemon.root).stdout)["hits"]
    assert hit["path"] not in [one["path"] for one in found]


def test_notes_of_another_project_are_named_and_not_imported(daemon, notes, tmp_path):
    notes.parent.rename(notes.parents[1] / "-elsewhere")
    done = daemon.memctl("import", "claude-code", "--memory", cwd=daemon.root)
    assert done.returncode == exits.NONE
    assert "from a project other than" in done.stderr
    assert "--all-projects" in done.stderr
    done = daemon.memctl("import", "claude-code", "--memory", "--all-projects", cwd=daemon.root)
    assert "2 new" in done.stdout


def test_a_clients_notes_are_followed(daemon, notes):
    process = following(daemon, "claude-code", "--memory")
    try:
        assert len(json.loads(process.stdout.readline())["new"]) == 2
        (notes / "boat.md").write_text("# Boat\n\nThe jib is torn.\n")
        [boat] = json.loads(process.stdout.readline())["new"]
        (notes / ".new").write_text("# Boat\n\nThe jib is mended.\n")
        (notes / ".new").rename(notes / "boat.md")
        assert json.loads(process.stdout.readline())["grown"] == [boat]
        (notes / "boat.md").unlink()
        assert json.loads(process.stdout.readline())["gone"] == [boat]
        notes.rename(notes.with_name("away"))
        time.sleep(5)  # two looks
        notes.with_name("away").rename(notes)
        (notes / "last.md").write_text("# Last\n")
        report = json.loads(process.stdout.readline())
        assert (len(report["new"]), report["gone"]) == (1, [])
    finally:
        process.terminate()
        process.communicate(timeout=30 * PATIENCE)


def test_geminis_file_is_followed_although_it_is_replaced(daemon, tmp_path, monkeypatch):
    """The sandbox allows what is in its place, not only the file that was there first."""
    monkeypatch.setitem(daemon.environment, "GEMINI_CLI_HOME", str(tmp_path))
    file = tmp_path / ".gemini/GEMINI.md"
    file.parent.mkdir()
    file.write_text("- Prefers tea.\n")
    process = following(daemon, "gemini", "--memory")
    try:
        [page] = json.loads(process.stdout.readline())["new"]
        file.with_name("new").write_text("- Prefers coffee.\n")
        file.with_name("new").rename(file)
        assert json.loads(process.stdout.readline())["grown"] == [page]
        assert "coffee" in (daemon.root / page).read_text()
    finally:
        process.terminate()
        process.communicate(timeout=30 * PATIENCE)
        shutil.rmtree(daemon.root / "memory" / "archives", ignore_errors=True)

"""What an import does to the files that stand in the archive."""

import re
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from daemon_process import until
from imports.conftest import Workspace, answered, typed
from killed_at_a_call import DEADLY
from patience import PATIENCE

from memd.errors import UnsafeError, WorkspaceError
from memd.imports import page
from memd.imports.archive import Archive
from memd.sources.scan import MAX_SOURCE_BYTES


def test_the_same_again_changes_nothing(workspace):
    """Not even a stamp: nobody has to index a page again."""
    path = workspace.session(typed("kept"), answered("yes"))
    [page] = workspace.imports("claude-code", path)["new"]
    before = (workspace.root / page).stat().st_mtime_ns
    found = workspace.imports("claude-code", path)
    assert (found["new"], found["grown"], found["unchanged"]) == ([], [], 1)
    assert (workspace.root / page).stat().st_mtime_ns == before


def test_a_session_that_has_grown_is_brought_up_to_date_at_its_place(workspace):
    """Whatever its title is by now: links to the page stay right."""
    [page] = workspace.imports("claude-code", workspace.session(typed("first")))["new"]
    path = workspace.session(
        typed("first"), answered("second"), {"type": "custom-title", "customTitle": "Other"}
    )
    assert workspace.imports("claude-code", path)["grown"] == [page]
    assert "second" in workspace.page()
    assert workspace.front()["title"] == "Other"


def test_what_the_user_changed_is_left_alone_and_named(workspace):
    path = workspace.session(typed("first"))
    [page] = workspace.imports("claude-code", path)["new"]
    path = workspace.session(typed("first"), answered("second"))
    for text in ((workspace.root / page).read_text() + "\nMy own line.\n", "Only my words.\n", ""):
        (workspace.root / page).write_text(text)
        found = workspace.imports("claude-code", path)
        assert found["left_alone"] == [{"path": page, "why": "was changed by hand"}]
        assert workspace.page() == text


def test_what_the_user_deleted_stays_away_until_it_is_wanted_again(workspace):
    """A conversation that was private does not come back with the next import."""
    path = workspace.session(typed("first"))
    [page] = workspace.imports("claude-code", path)["new"]
    (workspace.root / page).unlink()
    [left] = workspace.imports("claude-code", path)["left_alone"]
    assert "was deleted since" in left["why"]
    assert workspace.pages() == {}
    assert workspace.imports("claude-code", path, again=True)["new"] == [page]


def test_a_page_that_was_moved_or_renamed_is_still_the_same(workspace):
    path = workspace.session(typed("first"))
    [page] = workspace.imports("claude-code", path)["new"]
    moved = workspace.root / "memory/archives/claude-code/queues" / f"mine-{page[-9:]}"
    moved.parent.mkdir()
    (workspace.root / page).rename(moved)
    path = workspace.session(typed("first"), answered("second"))
    assert workspace.imports("claude-code", path)["grown"] == [moved.relative_to(workspace.root).as_posix()]
    assert "second" in workspace.page()


def test_an_archive_that_has_more_than_the_client_kept_is_left_alone(workspace):
    """A client that throws old turns away does not throw them out of the archive."""
    workspace.imports("claude-code", workspace.session(typed("first"), answered("second"), typed("third")))
    before = workspace.page()
    found = workspace.imports("claude-code", workspace.session(typed("first")))
    assert "has more turns" in found["left_alone"][0]["why"]
    assert workspace.page() == before


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(workspace):
    path = workspace.session(typed("first"))
    dry = workspace.imports("claude-code", path, dry_run=True)
    assert not (workspace.root / "memory/archives").exists()
    assert workspace.imports("claude-code", path)["new"] == dry["new"]
    path = workspace.session(typed("first"), answered("second"))
    before = workspace.pages()
    dry = workspace.imports("claude-code", path, dry_run=True)
    assert workspace.pages() == before
    assert workspace.imports("claude-code", path)["grown"] == dry["grown"]


def test_a_long_conversation_goes_on_in_further_pages(workspace):
    records = []
    for number in range(60):
        records += [typed(f"question {number}"), answered(f"answer {number}\n" + "word " * 10_000)]
    first = workspace.imports("claude-code", workspace.session(*records))
    before = workspace.pages()
    assert len(first["new"]) > 2
    assert first["conversations"] == 1
    assert all(len(text.encode()) < MAX_SOURCE_BYTES for text in before.values())
    whole = "".join(before[path.removeprefix("memory/archives/")] for path in first["new"])
    assert re.findall(r"^question (\d+)$", whole, re.MULTILINE) == [str(number) for number in range(60)]
    grown = workspace.imports("claude-code", workspace.session(*records, typed("one more")))
    assert grown["grown"] == first["new"][-1:]
    assert grown["unchanged"] == len(first["new"]) - 1


def test_a_single_turn_of_any_length_is_cut_where_a_line_ends(workspace):
    lines = [f"line {number} {'x' * 80}" for number in range(60_000)]
    found = workspace.imports("claude-code", workspace.session(typed("\n".join(lines))))
    pages = workspace.pages()
    assert all(len(text.encode()) < MAX_SOURCE_BYTES for text in pages.values())
    whole = "".join(pages[path.removeprefix("memory/archives/")] for path in found["new"])
    assert [line for line in whole.split("\n") if line.startswith("line ")] == lines


def test_secrets_are_masked_in_text_title_and_name(workspace):
    """None of it reaches the archive, which is synced and shown to agents."""
    token = "ghp_" + "9bX2kQ7vT4mZ1wR8sL5nC3yH6jD0fGpAeUiO"
    found = workspace.imports(
        "claude-code", workspace.session(typed(f"{token} is my token"), answered(token))
    )
    assert token not in workspace.page() + found["new"][0]
    assert re.search(r"\[masked: [^\]]+\] is my token", workspace.page())


def test_files_and_folders_are_their_owners_alone(workspace):
    [page] = workspace.imports("claude-code", workspace.session(typed("first")))["new"]
    assert stat.S_IMODE((workspace.root / page).stat().st_mode) == 0o600
    assert stat.S_IMODE((workspace.root / page).parent.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize(
    "place", ["memory/archives", "memory/archives/claude-code", "memory/archives/claude-code/2026"]
)
def test_a_link_on_the_way_is_refused(workspace, tmp_path, place):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (workspace.root / place).parent.mkdir(parents=True, exist_ok=True)
    (workspace.root / place).symlink_to(elsewhere)
    with pytest.raises(UnsafeError, match=place):
        workspace.imports("claude-code", workspace.session(typed("first")))
    assert list(elsewhere.iterdir()) == []


def test_a_page_that_became_a_link_is_not_followed(workspace, tmp_path):
    path = workspace.session(typed("first"))
    [page] = workspace.imports("claude-code", path)["new"]
    other = tmp_path / "other.md"
    (workspace.root / page).rename(other)
    (workspace.root / page).symlink_to(other)
    before = other.read_bytes()
    [left] = workspace.imports("claude-code", workspace.session(typed("first"), answered("b")), again=True)[
        "left_alone"
    ]
    assert left["path"] == page
    assert other.read_bytes() == before


def test_a_folder_without_memory_is_no_workspace(workspace):
    """Its disk may not be mounted: nothing is made there."""
    (workspace.root / "memory").rmdir()
    with pytest.raises(WorkspaceError, match="memctl init"):
        workspace.imports("claude-code", workspace.session(typed("first")))


def test_two_conversations_whose_ids_begin_alike_are_two(workspace, monkeypatch):
    """Six digits are in a file's name; the whole id is in the file."""
    sessions = [workspace.session(typed("same"), name=f"s{number}.jsonl") for number in range(2)]
    real = page.hashlib.sha256
    monkeypatch.setattr(page.hashlib, "sha256", lambda raw: _Alike(real(raw)))
    found = [workspace.imports("claude-code", path) for path in sessions]
    assert [len(one["new"]) for one in found] == [1, 0]
    assert "by hand" in found[1]["left_alone"][0]["why"]  # one name for two: the first one stays


class _Alike:
    def __init__(self, digest):
        self._digest = digest

    def hexdigest(self):
        return f"abcdef{self._digest.hexdigest()[6:]}"


SESSIONS = 3
IMPORT = """
import sys
from pathlib import Path
from memd.imports import run
order = run.Order(Path(sys.argv[1]), "claude-code", (Path(sys.argv[2]),))
run.run(order, run.sources(order), lambda *_: None)
"""
IMPORTED_UNTIL_A_CALL = f"""{DEADLY}
from pathlib import Path
from memd.imports import run
status = left = 0
while left == 0 or status:
    left += 1
    root = Path(sys.argv[1], f"{{left:03}}", "notes")
    (root / "memory").mkdir(parents=True)
    order = run.Order(root, "claude-code", (Path(sys.argv[2]),))
    if not (importing := os.fork()):
        for name in ("open", "mkdir", "fdopen", "write", "fsync", "rename", "unlink", "close"):
            setattr(os, name, deadly(getattr(os, name)))
        run.run(order, run.sources(order), lambda *_: None)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(importing, 0)[1])
    print(status)
"""


def test_an_import_that_is_killed_at_any_call_ends_with_the_same_files_when_it_is_run_again(
    workspace, tmp_path
):
    folder, killed = tmp_path / "claude-code", tmp_path / "killed"
    for number in range(SESSIONS):
        workspace.session(typed(f"session {number}"), answered("word " * 500), name=f"{number}.jsonl")
    workspace.imports("claude-code", folder)
    whole = workspace.pages()
    assert len(whole) == SESSIONS
    command = [sys.executable, "-c", IMPORTED_UNTIL_A_CALL, str(killed), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()[:-1]) == {str(-signal.SIGKILL)}, done.stderr
    seen = []
    for one in sorted(killed.iterdir()):
        there = Workspace(one)
        pages = {name: text for name, text in there.pages().items() if "/.memd-write-" not in name}
        assert pages.items() <= whole.items()
        seen.append(len(pages))
        there.imports("claude-code", folder)
        assert there.pages() == whole
    assert seen == sorted(seen)
    assert set(seen) == set(range(SESSIONS + 1))


# Not of getrusage, which begins with what the process had that this one was forked from.
PEAK = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"


def test_memory_does_not_grow_with_a_session(workspace, tmp_path):
    """A session of 40 MB is imported within 30 MB above what one of a few bytes takes."""
    output = [{"type": "tool_result", "content": "word " * 100_000}]
    turns = [typed(output), answered("word " * 10_000)]
    took = []
    for number, count in enumerate((1, 80)):
        path = workspace.session(typed("first"), *turns * count, name=f"{number}.jsonl")
        done = subprocess.check_output(
            [sys.executable, "-c", f"{IMPORT}\n{PEAK}", str(workspace.root), str(path)]
        )
        took.append(int(done))
    assert took[1] - took[0] < 30 * 1024  # KiB


def opened_by(pid):
    """Return the paths that a process has open; one may be closed while they are read."""
    found = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.add(str(link.readlink()))
    return found


def test_two_imports_at_once_wait_for_each_other(workspace):
    path = workspace.session(typed("first"))
    first = Archive(workspace.root, "claude-code", dry_run=False, again=False)
    second = subprocess.Popen([sys.executable, "-c", IMPORT, str(workspace.root), str(path)])
    top = str(workspace.root / "memory/archives/claude-code")
    try:
        until(lambda: top in opened_by(second.pid))
        time.sleep(1)  # it would have written by then
        assert workspace.pages() == {}
        first.close()
        assert second.wait(30 * PATIENCE) == 0
    finally:
        second.kill()
        second.wait()
    assert len(workspace.pages()) == 1

"""`memctl find` on a real terminal (tmux), at a real daemon."""

import os
import pty
import re
import signal
import sys

import pytest
from daemon_process import folder_of, until

pytestmark = pytest.mark.usefixtures("shared_daemon")

HOSTILE = (
    "# Zebra \x1b]0;owned\x07\x1b[31mred\x1b[0m\n\nzebra \x1b[2J \x9b31m \u202eesrever [bold]markup[/bold]\n"
)


def finds(screen, *arguments, typed=""):
    screen.type(f"clear; memctl {' '.join(arguments or ['find'])}; echo left $?")
    screen.until(lambda rows: any("enter open" in row for row in rows))
    if typed:
        screen.type("", typed)


def retype(screen, typed):
    screen.type("", "C-u", typed)


def shows(screen, *texts, without=()):
    """Wait until all of *texts* are on the screen, each in a row of its own or not; return the rows."""
    return screen.until(
        lambda rows: (
            all(any(one in row for row in rows) for one in texts)
            and not any(one in row for one in without for row in rows)
        )
    )


def leave(screen):
    """Leave it; return what stands on the screen then."""
    screen.type("", "Escape")
    return screen.until(lambda rows: any(row.startswith("left") for row in rows))


def test_hits_come_as_one_types_and_the_chosen_one_is_shown(screen):
    finds(screen, typed="queue")
    rows = screen.until(lambda rows: ".md:" in rows[3] and " hits" in rows[1] and "by words" not in rows[1])
    first, second = (re.search(r"([\w-]+)\.md:", row)[1] for row in rows[2:4])
    shows(screen, f"/{first}.md:1-")
    screen.type("", "Down")
    shows(screen, f"/{second}.md:1-")
    retype(screen, "sqlite wal")
    shows(screen, "programming/sqlite-wal.md:1-", "Readers never block", without=["PRAGMA"])
    screen.type("", "S-Down", "S-Down")
    shows(screen, "PRAGMA journal_mode")
    assert "left 0" in leave(screen)


def test_search_i_is_the_same_with_its_words_typed_already(screen):
    finds(screen, "search", "-i", "--tag", "storage", "one", "database")
    rows = shows(screen, "decisions/postgres.md:7-", "tag:storage")
    assert rows[0].startswith("one database")
    assert not any("no-kubernetes" in row for row in rows)
    retype(screen, "kubernetes")
    shows(screen, "no hits", without=["no-kubernetes"])


def test_filters_in_what_is_typed_count_and_are_shown_as_memd_reads_them(screen):
    finds(screen, typed="postgres tag:decision path:decisions/ since:2020 -fridays")
    rows = shows(screen, "tag:decision", "path:decisions/", "since:2020-01-01", "-fridays")
    assert any("decisions/postgres.md" in row for row in rows)
    retype(screen, "since:never queue")
    shows(screen, "since:never queue", " hit", without=["since:2020", "by words", "tag:decision"])


def test_enter_opens_the_place_and_comes_back(screen, sample):
    finds(screen, typed="rsync restart one host")
    shows(screen, "decisions/no-kubernetes.md:1-")
    screen.type("", "Enter")
    opened = screen.folder / "opened"
    until(lambda: opened.exists() and opened.read_text().endswith("\n"))
    assert opened.read_text() == f"+6 {sample[1]}/decisions/no-kubernetes.md\n"
    shows(screen, "decisions/no-kubernetes.md:1-", "enter open")
    retype(screen, "")
    assert "no-kubernetes.md:1  " in shows(screen, "changed or opened last")[2]
    retype(screen, "mrna vaccine")
    shows(screen, "research/vaccines.md:1-")


def test_an_editor_that_is_not_there_is_told_in_place(screen):
    screen.type("export EDITOR=/nowhere/vim")
    finds(screen, typed="mrna vaccine")
    shows(screen, "research/vaccines.md:1-")
    screen.type("", "Enter")
    shows(screen, "/nowhere/vim can't be started", "enter open")
    retype(screen, "sqlite wal")
    shows(screen, "programming/sqlite-wal.md:1-", without=["/nowhere/vim"])


def test_place_and_text_can_be_copied(screen, sample):
    """By OSC 52: this terminal takes it into its buffer."""
    finds(screen, typed="mrna vaccine")
    shows(screen, "research/vaccines.md:1-", "The shot carries")
    screen.type("", "C-y")
    shows(screen, "path:line copied")
    assert screen.clipboard() == f"{sample[1]}/research/vaccines.md:1"
    screen.type("", "C-t")
    shows(screen, "the text copied")
    assert screen.clipboard().startswith("# mRNA vaccines\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_byte_of_another_encoding_is_typed_and_a_signal_leaves_the_terminal_sane(screen, number):
    screen.type(f"clear; sh -c 'echo $$ >{screen.folder}/pid; exec memctl find'; echo left $?; stty -a")
    shows(screen, "enter open")
    screen.paste("mrna\udcff vaccine")
    shows(screen, "mrna\ufffd vaccine", "research/vaccines.md:1-")
    os.kill(int((screen.folder / "pid").read_text()), number)
    shows(screen, f"left {128 + number}", " icanon ", without=["-icanon", "Warning"])


def test_it_ends_with_its_terminal_also_where_a_hangup_is_ignored(sample):
    started = f'trap "" HUP; exec {sys.executable} -m memctl find'
    unbuffered = {"TERM": "xterm-256color", "PYTHONUNBUFFERED": "1"}  # the thread that draws fails at once
    child, controller = pty.fork()
    if child == 0:
        os.chdir(sample[1])
        os.execve("/bin/sh", ["sh", "-c", started], sample[0].environment | unbuffered)
    shown = b""
    while b"enter open" not in shown:
        shown += os.read(controller, 65536)
    os.close(controller)
    until(lambda: os.waitpid(child, os.WNOHANG)[0])


def test_a_query_that_cannot_be_is_told_in_place(screen):
    finds(screen, typed=f"path:{'*a' * 600}")
    shows(screen, "has 1,200 characters; at most", without=["Traceback"])
    retype(screen, "mrna vaccine")
    shows(screen, "research/vaccines.md:1-", without=["1,200"])


def test_fifty_columns_are_enough(screen):
    screen.resize(50)
    finds(screen, typed="mrna vaccine")
    rows = shows(screen, "research/vaccines.md:1-", "The shot carries")
    assert max(map(len, rows)) <= 50
    assert rows[2].startswith("mRNA vaccines  …")
    assert rows[2].split()[2].endswith("h/vaccines.md:1")


def test_a_hit_is_what_it_is_called_the_end_of_its_path_and_the_line_that_matches(workspace, terminal):
    name = "a-folder-of-many-notes/with-long-names/the-heron-of-the-weir-below-the-mill.md"
    folder_of(workspace.root, {name: "# Herons\n\n## In spring\n\nThe heron waits by the weir.\n"})
    workspace.call("sync")
    screen = terminal(workspace.daemon, workspace.root)
    finds(screen, typed="heron waits")
    rows = shows(screen, "mill.md:5  ")
    assert rows[2].startswith("Herons > In spring  …")
    assert "…/the-heron-of-the-weir-below-the-mill.md:5  The heron" in rows[2]


def test_on_a_wide_screen_the_section_stands_beside_the_hits(screen):
    screen.resize(130)
    finds(screen, typed="mrna vaccine")
    rows = shows(screen, "research/vaccines.md:1-")
    assert rows[2].startswith("mRNA vaccines  research/vaccines.md:1 ")
    assert "research/vaccines.md:1-" in rows[2]


def test_keys_act_in_the_order_in_which_they_come(screen):
    finds(screen, typed="kubernetes")
    screen.type("", "C-u", "mrna", "Space", "vaccinX", "BSpace", "e")
    screen.until(lambda rows: rows[0].rstrip() == "mrna vaccine")
    shows(screen, "research/vaccines.md:1-")


def test_what_a_note_holds_is_shown_and_not_obeyed(workspace, terminal):
    (workspace.root / "hostile\x1b[31m.md").write_text(HOSTILE)
    workspace.call("sync")
    screen = terminal(workspace.daemon, workspace.root)
    finds(screen, typed="zebra")
    told = "hostile␛[31m.md:1", "␛]0;owned␇␛[31mred", "␛[2J", "[bold]markup[/bold]"
    rows = shows(screen, *told, without=["opened last"])
    assert "zebra" in rows[0]
    assert not any(one in row for row in rows for one in "\x9b\u202e")


def test_all_workspaces_are_searched_together(workspace, terminal, tmp_path):
    other = folder_of(tmp_path / "work", {"weir.md": "The weir is closed on Mondays.\n"})
    workspace.daemon.add(other)
    screen = terminal(workspace.daemon, workspace.root)
    finds(screen, "find", "--all", typed="weir")
    shows(screen, "notes: 1.md:1", "work: weir.md:1")


def test_a_daemon_is_started_where_none_runs(workspace, terminal):
    workspace.daemon.stop()
    screen = terminal(workspace.daemon, workspace.root)
    finds(screen, typed="weir")
    shows(screen, "1.md:1", "The weir was mended")


def test_a_daemon_that_dies_is_told_and_started_by_the_next_key(workspace, terminal):
    daemon, root = workspace
    screen = terminal(daemon, root)
    finds(screen, typed="weir")
    shows(screen, "1.md:1", "The weir was mended")
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()
    shows(screen, "memd closed the connection", "1.md:1")
    assert not daemon.listens()
    retype(screen, "oats")
    shows(screen, "2.md:1", "Buy oats.", without=["closed the connection"])
    daemon.memctl("stop")
    shows(screen, "memd closed the connection")
    with pytest.raises(AssertionError):
        until(daemon.listens, timeout_s=0.4)  # it looks twice a second
    daemon.start()
    shows(screen, "2.md:1", "Buy oats.", without=["closed the connection"])
    assert "left 0" in leave(screen)


def test_what_is_wrong_with_the_options_is_told_before_the_screen(screen, sample):
    screen.type("clear; memctl find --since never; echo left $?")
    rows = screen.until(lambda rows: "left 2" in rows)
    assert any("--since: 'never' is not a day" in row for row in rows)
    screen.type("clear; memctl find -w /tmp; echo left $?")
    screen.until(lambda rows: "left 4" in rows)
    screen.type("clear; TERM= memctl find; echo left $?")
    screen.until(lambda rows: "left 2" in rows)
    done = sample.memctl("find")
    assert (done.returncode, "needs a terminal" in done.stderr) == (2, True)
    done = sample.memctl("search", "-i", "--json", "x")
    assert (done.returncode, "-i shows a screen" in done.stderr) == (2, True)


def test_it_begins_with_the_notes_changed_last_and_shows_what_is_beside_a_hit(workspace, terminal):
    folder_of(workspace.root, {
        "heron.md": "# Herons\n\nThe heron waits by the weir.\n",
        "egret.md": "# Egrets\n\nThe egret waits by the weir. See [[heron]].\n",
        "links.md": "# Waders\n\nhttps://example.org/grebe\n\n```sh\nls grebe\n```\n",
    })  # fmt: skip
    os.utime(workspace.root / "links.md", (0, 2e9))
    workspace.call("sync")
    screen = terminal(workspace.daemon, workspace.root)
    finds(screen)
    rows = shows(screen, "changed or opened last", "heron.md:", "egret.md:", without=["links.md:1-"])
    assert rows[2].startswith("Waders  links.md:1  changed 2033-05-18")
    screen.type("", "grebe")
    rows = shows(screen, "1 hit", "links.md:", without=["by words"])
    assert "example.org" not in rows[2]
    retype(screen, "heron waits")
    shows(screen, "heron.md:1-", without=["by words", "opened last"])
    screen.type("", "C-b")
    shows(screen, "1 links to heron.md", "egret.md:3")
    screen.type("", "Escape")
    shows(screen, "heron.md:1-", without=["links to"])
    screen.type("", "C-r")
    shows(screen, "related to heron.md", "egret.md:1")
    screen.type("", "C-l")
    shows(screen, "the link copied")
    assert screen.clipboard() == "[[egret]]"
    screen.type("", "Escape")
    shows(screen, "heron.md:1-", without=["related to"])
    assert "left 0" in leave(screen)

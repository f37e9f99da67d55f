"""Each command prints what it should, where it should, and ends with its exit code."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import forked
import pytest
from patience import PATIENCE
from sample_answers import READY, found, hit, known, status
from scripted_peer import AS_IN_A_TERMINAL, refuse

from memctl import __version__, exits
from memctl.__main__ import main
from memctl.commands import COMMANDS, RENAMED


def run(*argv, stdin=b""):
    """Run memctl as a process with pipes for all streams."""
    return forked.run(
        [sys.executable, "-m", "memctl", *argv], input=stdin, capture_output=True, timeout=30 * PATIENCE
    )


def test_a_search_of_a_ready_workspace_is_one_round_trip(root, peer, capsys):
    daemon = peer(search=found(hit()))
    assert main(["search", "breast", "cancer"]) == exits.OK
    assert daemon.methods == ["search"]
    params = daemon.asked[0][1]
    assert {key: params[key] for key in params if key != "timeout_ms"} == {
        "workspace": str(root),
        "query": "breast cancer",
    }
    out, err = capsys.readouterr()
    assert "BRCA1 mutation analysis" in out
    assert err == ""


def test_no_hits_end_with_1_and_a_word_on_stderr(peer, capsys):
    peer(search=found())
    assert main(["search", "x"]) == exits.NONE
    assert capsys.readouterr() == ("", "memctl: no hits\n")


def test_json_is_one_object_also_without_hits(peer, capsys):
    answer = found(mode="keyword", degraded=["model-loading"])
    peer(search=answer)
    assert main(["search", "--json", "x"]) == exits.INCOMPLETE
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == (answer, "")
    assert out.count("\n") == 1


@pytest.mark.parametrize("form", ["--jsonl", "--vimgrep", "--files", "--color=never"])
def test_line_forms_tell_degraded_on_stderr(peer, capsys, form):
    peer(search=found(hit(), mode="keyword", degraded=["model-loading"]))
    assert main(["search", form, "x"]) == exits.OK
    out, err = capsys.readouterr()
    assert "genetics.md" in out
    assert err.startswith("memctl: keyword only: model-loading")


def test_a_search_right_after_init_waits_for_the_first_index(peer, capsys):
    answers = iter([found(index={"state": "scanning", "first": True, "first_words": True}), found(hit())])
    daemon = peer(search=lambda _: next(answers), index=READY)
    assert main(["search", "x"]) == exits.OK
    assert daemon.methods == ["search", "index", "search"]
    assert daemon.asked[1][1]["vectors"] is False
    out, err = capsys.readouterr()
    assert "BRCA1" in out
    assert "--no-wait" in err
    assert err.endswith("memctl: indexing 1/3\n")


@pytest.mark.parametrize("code", ["MEMD_TIMEOUT", "MEMD_IO", "MEMD_NOSPACE"])
def test_a_first_index_that_cannot_go_on_is_searched_as_it_is(peer, capsys, code):
    """On a full disk, what was indexed answers, as the message says."""
    peer(search=found(hit(), index={"first": True, "first_words": True}), index=refuse(code, "disk full"))
    assert main(["search", "x"]) == exits.OK
    out, err = capsys.readouterr()
    assert "BRCA1" in out
    assert "memctl: disk full. The answer is from what is indexed\n" in err


def test_no_wait_takes_the_first_answer(peer, capsys):
    index = {"state": "scanning", "first": True, "pending_files": 2}
    daemon = peer(search=found(hit(), index=index))
    assert main(["search", "--no-wait", "x"]) == exits.OK
    assert daemon.methods == ["search"]
    assert "2 files still to be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("code", "status_code"),
    [
        ("MEMD_INVALID", 2), ("MEMD_STOPPING", 3), ("MEMD_NOT_FOUND", 5), ("MEMD_BUSY", 6),
        ("MEMD_TIMEOUT", 6), ("MEMD_UNSAFE", 7), ("MEMD_SECRET", 7), ("MEMD_CONFIG", 8), ("MEMD_EMBEDDER", 9),
        ("MEMD_STORE", 9), ("MEMD_INTERNAL", 70), ("MEMD_BRAND_NEW", 70), ("MEMD_NOSPACE", 74),
    ],
)  # fmt: skip
def test_each_class_of_error_has_its_exit_code(peer, capsys, code, status_code):
    peer(search=refuse(code, "no luck with \x1b[2J"))
    assert main(["search", "x"]) == status_code
    out, err = capsys.readouterr()
    assert (out, err) == ("", "memctl: no luck with ␛[2J\n")


def test_a_bug_of_ours_is_70_and_never_looks_like_no_hits(peer, capsys):
    """The traceback is for the report, the exit code for the script."""
    peer(search={"unexpected": True})
    assert main(["search", "x"]) == exits.INTERNAL
    assert "KeyError" in capsys.readouterr().err


def test_every_error_code_of_memd_has_an_exit_code():
    """The client's table misses none of the daemon's error tree."""
    from memd.errors import MemdError

    def codes(cls):
        return {cls.code}.union(*(codes(sub) for sub in cls.__subclasses__()))

    assert codes(MemdError) == set(exits.OF_CODE)


def test_a_workspace_that_memd_does_not_know_is_told_to_be_registered(root, peer, capsys):
    """A clone on a new machine: exit code 4 and the command to paste."""
    peer(search=refuse("MEMD_WORKSPACE"))
    assert main(["search", "x"]) == exits.WORKSPACE
    assert f"memctl init {root}" in capsys.readouterr().err


def test_without_a_workspace_nothing_is_asked(tmp_path, peer, monkeypatch, capsys):
    daemon = peer()
    (tmp_path / "memory" / "config.toml").unlink()
    assert main(["search", "x"]) == exits.WORKSPACE
    assert daemon.asked == []
    assert "memctl init" in capsys.readouterr().err


def test_a_query_may_be_any_bytes(peer):
    daemon = peer(search=found(hit()))
    assert subprocess.run(
        [sys.executable, "-m", "memctl", "search", b"caf\xe9 \xff"], capture_output=True, check=False
    ).returncode == 0  # fmt: skip
    assert run("search", "-", stdin=b"\xffa\x00b").returncode == 0
    assert [params["query"] for _, params in daemon.asked] == ["caf\ufffd \ufffd", "\ufffda\x00b"]


@pytest.mark.parametrize("argv", [["search"], ["search", "  "], ["search", "--", ""], ["recall"]])
def test_an_empty_query_is_wrong_usage(root, capsys, argv):
    assert main(argv) == exits.USAGE
    assert "--help" in capsys.readouterr().err


@pytest.mark.parametrize(("lines", "cure"), [("5-2", "a.md:2-5"), ("0", "a.md:2-5")])
def test_lines_that_cannot_be_are_wrong_usage(root, capsys, lines, cure):
    """A span that ends before it begins is no empty answer, and line 0 is no line."""
    assert main(["get", f"a.md:{lines}"]) == exits.USAGE
    assert cure in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["get"], ["why"], ["similar"], ["links"], ["ls"]])
def test_a_path_that_is_not_utf_8_is_told_to_be_renamed(root, capsys, argv):
    words = ["x"] if argv == ["why"] else []
    assert main([*argv, "caf\udce9.md", *words]) == exits.USAGE
    assert "is not UTF-8, as each note must be: rename it" in capsys.readouterr().err


def test_a_path_of_any_length_is_asked_for(peer):
    """A name that no file system takes is the daemon's to refuse, not a traceback."""
    daemon = peer(get={"text": "x"})
    assert main(["get", "a" * 5000]) == exits.OK
    assert daemon.asked[0][1]["path"] == "a" * 5000


def test_recall_shows_three_of_many_omissions(root, peer, capsys):
    """A prompt leaves dozens out: a line on stderr stays a line."""
    omitted = [
        {"path": "b.md", "start_line": line, "end_line": 9, "reason": "budget"} for line in range(1, 9)
    ]
    answer = {"text": "x", "tokens": 1, "sources": [{"score": 0.5}], "omitted": omitted, "index": {}}
    peer(recall={**answer, "workspace": str(root)})
    assert main(["recall", "x"]) == exits.OK
    assert capsys.readouterr().err.endswith("b.md:3 (budget), and 5 more (--json has all)\n")


def test_recall_prints_its_text_and_names_what_was_left_out(root, peer, capsys):
    omitted = [{"path": "b.md", "start_line": 3, "end_line": 9, "reason": "budget"}]
    source = {"path": "a.md", "start_line": 1, "end_line": 2, "id": 1, "score": 0.5}
    answer = {"text": "## a\nfact", "tokens": 3, "sources": [source], "omitted": omitted, "index": {}}
    daemon = peer(recall={**answer, "workspace": str(root)})
    assert main(["recall", "--budget", "9", "x"]) == exits.OK
    assert daemon.asked[0][1]["budget_tokens"] == 9
    assert capsys.readouterr() == ("## a\nfact\n", "memctl: left out: b.md:3 (budget)\n")


def test_get_prints_the_lines_that_were_named(peer, capsys):
    daemon = peer(get={"path": "a.md", "start_line": 2, "end_line": 3, "text": "two\nthree"})
    assert main(["get", "a.md:2-3"]) == exits.OK
    wanted = {"path": "a.md", "start_line": 2, "end_line": 3}
    assert wanted.items() <= daemon.asked[0][1].items()
    assert capsys.readouterr().out == "two\nthree\n"


def test_add_sends_stdin_and_prints_the_path(peer):
    daemon = peer(extract_memory={"path": "memory/t/x-1.md", "id": "1", "created": True, "similar": []})
    named = ("--topic", "t", "--title", "T", "--tag", "a", "--tag", "b", "--force")
    done = run("add", *named, stdin="föö\n".encode())
    assert (done.returncode, done.stdout) == (0, b"memory/t/x-1.md\n")
    sent = daemon.asked[0][1]
    assert (sent["content"], sent["tags"], sent["force"], sent["source"]) == (
        "föö\n", ["a", "b"], True, {"origin": "human", "client": "memctl"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (
            {"first_words": True, "left_s": {"words": 13.2, "vectors": None}},
            "by words in about 15 s, by meaning later",
        ),
        ({"first_words": True, "left_s": {"words": None, "vectors": None}}, "being made, by meaning later"),
        (
            {"pending_vectors": 9, "left_s": {"words": 0, "vectors": 150.0}},
            "by words, by meaning in about 3 min",
        ),
        ({"pending_vectors": 9, "left_s": {"words": 0, "vectors": None}}, "by words, by meaning soon"),
        ({"pending_vectors": 0, "embedded": 1.0}, "searchable by words and by meaning\n"),
        ({"pending_vectors": 0, "embedded": None}, "searchable by words\n"),
    ],
)
def test_init_tells_what_was_found_and_what_to_do_next(root, peer, capsys, index, said):
    answer = {"root": str(root), "created": True, "sources": 12, "config": f"{root}/memory/config.toml"}
    daemon = peer(workspace__add=answer, index=refuse("MEMD_TIMEOUT"), status=status(known(**index)))
    assert main(["init"]) == exits.OK
    assert daemon.asked[0][1]["path"] == str(root)
    out = capsys.readouterr().out
    assert all(part in out for part in ("12 sources", said, f"{root}/memory/config.toml", "memctl search"))
    assert ("run memctl init again" in out) is ("first_words" in index)
    # Those of the notes read so far may not be those of all.
    assert any(method == "workspace.configure" for method, _ in daemon.asked) is ("first_words" not in index)


def test_index_waits_and_counts(peer, capsys):
    daemon = peer(index=READY)
    assert main(["index", "--rebuild"]) == exits.OK
    sent = daemon.asked[0][1]
    assert (sent["wait"], sent["rebuild"], sent["progress"]) == (True, True, True)
    out, err = capsys.readouterr()
    assert out == "3 sources, 9 chunks, 9 vectors, 0 skipped, 1.5 s\n"
    assert "indexing" in err


def test_index_without_waiting_returns_at_once(peer, capsys):
    daemon = peer(index={"state": "scanning"})
    assert main(["index", "--no-wait"]) == exits.OK
    assert "progress" not in daemon.asked[0][1]
    assert "memctl status" in capsys.readouterr().out


def test_status_of_a_dead_daemon_starts_none(root, capsys):
    assert main(["status"]) == exits.UNREACHABLE
    assert "not running" in capsys.readouterr().out
    assert main(["status", "--json"]) == exits.UNREACHABLE
    assert json.loads(capsys.readouterr().out)["server"]["state"] == "dead"
    assert not (root / "s").exists()


def test_status_needs_no_workspace(peer, tmp_path, capsys):
    (tmp_path / "memory" / "config.toml").unlink()
    peer(status=status(known()))
    assert main(["status"]) == exits.OK
    assert "/home/ada/work" in capsys.readouterr().out


def test_a_daemon_that_does_not_answer_is_stuck_not_dead(peer, capsys, monkeypatch):
    monkeypatch.setattr("memctl.commands.common.AT_ONCE_S", 0.1)
    peer(status=lambda _: time.sleep(2), memd__hello=lambda _: time.sleep(2))
    assert main(["status", "--json"]) == exits.BUSY
    assert json.loads(capsys.readouterr().out)["server"]["state"] == "stuck"
    assert main(["status"]) == exits.BUSY
    assert capsys.readouterr().out.endswith("did not answer status in time. Restart it: memctl restart\n")
    assert main(["--version"]) == exits.OK
    assert "memd   unknown: memd did not answer memd.hello in time" in capsys.readouterr().out


def test_health_is_9_when_a_check_fails(peer, capsys):
    peer(health={"ok": False, "checks": [{"name": "search", "ok": False, "detail": "no hit"}]})
    assert main(["health"]) == exits.UNHEALTHY
    assert "FAIL  search  no hit" in capsys.readouterr().out


def test_workspaces_are_listed_removed_and_configured(root, peer, capsys):
    listed = {"workspaces": [{"root": "/a", "state": "ready", "sources": 1, "chunks": 2}]}
    daemon = peer(
        workspace__list=listed,
        index={"workspace": "/a", "sources": 99},
        workspace__remove={"root": "/a", "removed": True},
        workspace__configure={"root": str(root), "config": {}},
    )
    assert main(["workspaces"]) == exits.OK
    assert main(["workspaces", "remove", "/a"]) == exits.OK
    assert main(["workspaces", "configure", "min_score=0.2"]) == exits.OK
    assert daemon.methods == ["workspace.list", "index", "workspace.remove", "workspace.configure"]
    assert daemon.asked[3][1]["settings"] == {"min_score": 0.2}
    assert capsys.readouterr().out.startswith("/a\tready\t1 source\t2 chunks\n")


@pytest.mark.parametrize(
    "index", [{"workspace": "/a", "sources": 100}, refuse("MEMD_CONFIG", "wrong")], ids=["large", "unknown"]
)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_large_index_is_not_deleted_without_yes_where_nobody_is_asked(peer, capsys, index, more):
    daemon = peer(index=index, workspace__remove={"root": "/a", "removed": True})
    assert main(["workspaces", "remove", "/a", *more]) == exits.USAGE
    assert "--yes" in capsys.readouterr().err
    assert daemon.methods == ["index"]
    assert main(["workspaces", "remove", "/a", "--yes", *more]) == exits.OK
    assert daemon.methods == ["index", "workspace.remove"]


def test_an_older_daemon_that_lacks_a_method_is_named(peer, capsys, monkeypatch):
    monkeypatch.setattr("memctl.versions.__version__", "9.9.9")
    peer(health=refuse("MEMD_METHOD", "no method health"), memd__hello={"server_version": "0.0.1"})
    assert main(["health"]) == exits.USAGE
    assert "this memctl is 9.9.9, the running memd is 0.0.1" in capsys.readouterr().err


def test_a_reader_that_leaves_ends_us_quietly(peer, monkeypatch):
    # Python without buffers takes a write that was cut short for a whole one, and sees no error.
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    peer(search=found(*[hit(snippet="x" * 5000) for _ in range(500)]))
    searching = subprocess.Popen(
        [sys.executable, "-m", "memctl", "search", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    searching.stdout.read(10)
    searching.stdout.close()
    assert searching.stderr.read() == b""
    searching.stderr.close()
    assert searching.wait(10 * PATIENCE) == exits.PIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stdout and stderr"])
def test_output_on_a_full_disk_is_74_in_one_line(peer, both):
    peer(search=found(hit()))
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "memctl", "search", "x"]
        searching = subprocess.run(
            command, stdout=full, stderr=full if both else subprocess.PIPE, check=False
        )
    assert searching.returncode == exits.STORAGE
    assert both or searching.stderr == b"memctl: writing the output failed: No space left on device\n"


@pytest.mark.parametrize(
    ("argv", "closed", "status"),
    [
        ("search x", ">&-", exits.STORAGE),
        ("search x", "2>&-", exits.OK),
        ("add --topic t --title t", "<&-", exits.USAGE),
    ],
)
def test_a_closed_stream_is_an_empty_one_and_cannot_be_written(peer, argv, closed, status):
    peer(search=found(hit()))
    done = subprocess.run(
        ["sh", "-c", f'"$0" -m memctl {argv} {closed}', sys.executable], capture_output=True, check=False
    )
    assert done.returncode == status
    assert b"Traceback" not in done.stderr


def test_ctrl_c_ends_us_quietly(peer):
    is_left = threading.Event()
    daemon = peer(search=lambda _: is_left.wait(100 * PATIENCE))
    searching = subprocess.Popen([*AS_IN_A_TERMINAL, "search", "x"], stderr=subprocess.PIPE)
    while not daemon.asked:
        time.sleep(0.01)
    searching.send_signal(signal.SIGINT)
    assert searching.wait(10 * PATIENCE) == exits.INTERRUPTED
    is_left.set()
    assert searching.stderr.read() == b""
    searching.stderr.close()


def test_output_that_the_terminals_encoding_lacks_is_escaped(peer):
    answer = found(hit(snippet="日本 🎉"))
    peer(search=answer)
    ascii_out = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "memctl", "search", "x"]
    plain = subprocess.run(command, capture_output=True, env=ascii_out, check=True)
    assert b"\\u65e5" in plain.stdout
    as_json = subprocess.run([*command, "--json"], capture_output=True, env=ascii_out, check=True)
    assert json.loads(as_json.stdout) == answer


def test_a_notes_text_goes_to_a_pipe_as_it_is_whatever_encoding_is_named(peer):
    peer(get={"path": "a.md", "text": "Käse 日本\n"})
    ascii_out = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "memctl", "get", "a.md"]
    done = subprocess.run(command, capture_output=True, env=ascii_out, check=True)
    assert done.stdout == "Käse 日本\n".encode()


def test_hits_have_whole_paths_where_the_current_folder_was_deleted(
    root, peer, tmp_path, monkeypatch, capsys
):
    peer(search=found(hit(path="a.md")) | {"workspace": str(root)})
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["search", "--workspace", str(root), "--files", "x"]) == exits.OK
    assert capsys.readouterr().out == f"{root}/a.md\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name, capsys):
    assert main([name, "--help"]) == exits.OK
    page = capsys.readouterr().out
    assert page.startswith(f"usage: memctl {name}")
    assert "exit codes:\n  memctl help exit-codes" in page
    assert main(["help", name]) == exits.OK
    assert capsys.readouterr().out == page


def test_the_exit_codes_are_a_page(capsys):
    assert main(["help", "exit-codes"]) == exits.OK
    told = set(re.findall(r"(?:^|  )(\d+) ", capsys.readouterr().out, re.MULTILINE))
    assert {
        str(code) for name, code in vars(exits).items() if name.isupper() and isinstance(code, int)
    } == told


def test_an_unknown_command_gets_the_nearest_one(capsys):
    for argv in (["serach", "x"], ["help", "serach"]):
        assert main(argv) == exits.USAGE
        assert "did you mean search?" in capsys.readouterr().err
    assert main(["--json", "search", "x"]) == exits.USAGE
    assert "before the command: memctl COMMAND --json" in capsys.readouterr().err


@pytest.mark.parametrize("name", RENAMED)
def test_a_command_of_an_earlier_version_names_what_replaces_it(name, capsys):
    assert main([name, "notes/a.md", "--json"]) == exits.USAGE
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), RENAMED[name] in err) == ("", 1, True)
    replacing = re.findall(r"memctl (\S+)", err)
    assert set(replacing) <= {*COMMANDS, "help", "--version"}
    assert name not in COMMANDS


@pytest.mark.parametrize(
    ("daemon", "cure"),
    [
        ("0.0.10", "Start this version: memctl restart\n"),
        ("10.0.0", "Update this memctl\n"),  # an older daemon would not read the index of a newer one
        ("", ""),
    ],
)
def test_the_version_is_that_of_memctl_and_of_the_daemon(peer, root, capsys, daemon, cure):
    if daemon:
        peer(**{"memd.hello": {"server_version": daemon}})
    assert main(["--version"]) == exits.OK
    out, err = capsys.readouterr()
    assert out == f"memctl {__version__}\nmemd   {f'{daemon} (running)' if daemon else 'not running'}\n"
    assert err.endswith(cure)
    assert bool(err) is bool(cure)


@pytest.mark.parametrize(
    "argv",
    [
        ["journal", "a.md", "--since", "7d"], ["status", "-w", "."], ["pause", "--off", "--for", "1h"],
        ["search", "--all", "-w", "a", "x"],
        *([command, "-w", "a", "-w", "/", "x"] for command in ("status", "get", "index", "add")),
        *(["pause", f"--for={span}"] for span in ("0m", "2 weeks", "8d", "-1h", "nan", "1e9")),
        ["status", "--watch", "often"], ["sync", "--timeout", "x"], ["sync", "--timeout", "8d"],
    ],
)  # fmt: skip
def test_options_that_belong_to_another_form_of_a_command_are_wrong_usage(root, capsys, argv):
    """So is a second workspace, of which the last would win without a word."""
    assert main(argv) == exits.USAGE
    assert "--" in capsys.readouterr().err


def test_without_a_command_the_overview_goes_to_stderr(capsys):
    assert main([]) == exits.USAGE
    assert "usage: memctl COMMAND" in capsys.readouterr().err
    assert main(["--help"]) == exits.OK
    assert "usage: memctl COMMAND" in capsys.readouterr().out


def test_a_search_imports_no_heavy_library(peer):
    peer(search=found(hit()))
    code = (
        "import sys; from memctl.__main__ import main; status = main(['search', 'x']);"
        "heavy = {'rich', 'numpy', 'asyncio', 'dataclasses', 'subprocess', 'memd', 'tomllib', 'inspect',"
        "'shutil', 'textual'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr == b"[]\n"

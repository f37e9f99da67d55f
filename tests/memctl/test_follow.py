"""The commands about freshness and truth: watch, sync, check, and their options."""

import json
import re
import signal
import subprocess

import pytest
from patience import PATIENCE
from sample_answers import READY, found, hit
from scripted_peer import AS_IN_A_TERMINAL, refuse

from memctl import exits
from memctl.__main__ import main

AT = 1_780_000_000.25
SUBSCRIBED = {"subscribed": True, "workspaces": ["/home/ada/work"]}
CHECKED = {"ok": True, "findings": [], "checked": {"sources": 3, "chunks": 9}, "took_ms": 1234.5}
STALE = {"kind": "stamp", "text": "a.md changed and its stamp did not", "repaired": False}


def event(kind, **fields):
    return {"workspace": "/home/ada/work", "event": kind, "at": AT, "generation": 4, **fields}


def follow(peer, *events):
    """Let a peer tell these events to who subscribes, and then hang up."""
    return peer(*events, None, subscribe=SUBSCRIBED)


def test_watch_prints_a_line_an_event_and_ends_with_the_daemon(root, peer, capsys):
    daemon = follow(peer, event("indexed", paths=["a.md"], count=1), event("state", state="ready"))
    assert main(["watch"]) == exits.UNREACHABLE
    assert daemon.asked[0][1]["workspace"] == str(root)
    out, err = capsys.readouterr()
    assert [line.split(maxsplit=1)[1] for line in out.splitlines()] == ["indexed   a.md", "state     ready"]
    assert all(re.match(r"\d\d:\d\d:\d\d  ", line) for line in out.splitlines())
    assert err.splitlines()[0] == f"memctl: following {root}, Ctrl-C ends"
    assert "closed the connection" in err


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (event("removed", paths=["a.md", "b.md"], count=2), "removed   a.md, b.md"),
        (
            event("indexed", paths=[f"{n}.md" for n in range(100)], count=2500),
            "indexed   2,500 sources: 0.md, 1.md, 2.md, …",
        ),
        (event("indexed", count=2), "indexed   2 sources"),
        (event("embedded", count=64, pending_vectors=1000), "embedded  64 chunks, 1,000 to go"),
        (event("embedded", count=1, pending_vectors=0), "embedded  1 chunk"),
        (event("trouble", text="disk is full\x1b[2J"), "trouble   disk is full␛[2J"),
        (event("built", model="m", done=7), "built     model m, done 7"),
        (event("indexed", paths=["a\nb.md"], count=1), "indexed   a␊b.md"),
    ],
)
def test_each_kind_of_event_is_one_safe_line(peer, capsys, told, line):
    follow(peer, told)
    main(["watch"])
    assert capsys.readouterr().out.split(maxsplit=1)[1] == f"{line}\n"


def test_lost_events_are_said(peer, capsys):
    follow(peer, {"event": "lost", "count": 12})
    main(["watch"])
    assert capsys.readouterr().out.startswith("--:--:--  lost      12 events: memctl status")


def test_watch_json_is_an_object_a_line(peer, capsys):
    events = [event("indexed", paths=["日本.md"], count=1), {"event": "lost", "count": 1}]
    follow(peer, *events)
    assert main(["watch", "--json"]) == exits.UNREACHABLE
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == events


def test_outside_of_workspaces_all_are_followed(tmp_path, peer, capsys):
    (tmp_path / "memory" / "config.toml").unlink()
    daemon = follow(peer, event("state", state="ready"))
    main(["watch"])
    assert "workspace" not in daemon.asked[0][1]
    out, err = capsys.readouterr()
    assert out.split()[1:] == ["/home/ada/work", "state", "ready"]
    assert "all workspaces" in err


def test_lines_arrive_while_watch_goes_on_and_ctrl_c_ends_it(root, peer, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # which would do it for us
    peer(event("state", state="ready"), subscribe=SUBSCRIBED)
    watching = subprocess.Popen([*AS_IN_A_TERMINAL, "watch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watching.stdout.readline().endswith(b"state     ready\n")
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate(timeout=5 * PATIENCE)
    assert (watching.returncode, out) == (exits.INTERRUPTED, b"")
    assert err.decode() == f"memctl: following {root}, Ctrl-C ends\n"


def test_sync_says_how_long_it_took(root, peer, capsys):
    daemon = peer(sync={"synced": True, "generation": 5, "took_ms": 38.4, "index": {}})
    assert main(["sync", "--timeout", "2.5s"]) == exits.OK
    assert daemon.asked == [("sync", {"workspace": str(root), "timeout_ms": 2500, "progress": True})]
    assert capsys.readouterr().out == "synced in 38 ms\n"


@pytest.mark.parametrize(
    "answer", [{"synced": False, "generation": 5, "took_ms": 100, "index": {}}, refuse("MEMD_TIMEOUT")]
)
def test_a_sync_that_takes_too_long_ends_with_6(peer, capsys, answer):
    peer(sync=answer)
    assert main(["sync", "--timeout", "0.1"]) == exits.BUSY
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("memctl: not synced within 0.1 s: memctl status shows what memd is doing\n")
    assert main(["sync", "--json"]) == exits.BUSY
    assert json.loads(capsys.readouterr().out)["synced"] is False


@pytest.mark.parametrize("command", ["search", "recall"])
def test_sync_before_an_answer(peer, capsys, command):
    answer = found(hit(), synced=False) | {"text": "x", "sources": [{"score": 0.5}], "omitted": []}
    daemon = peer(**{command: answer})
    assert main([command, "--sync", "x"]) == exits.OK
    assert daemon.asked[0][1]["sync"] is True
    assert "not synced in time" in capsys.readouterr().err
    assert main([command, "x"]) == exits.OK
    assert "sync" not in daemon.asked[1][1]


def test_an_answer_that_is_synced_says_nothing_of_it(peer, capsys):
    peer(search=found(hit(), synced=True))
    assert main(["search", "--sync", "x"]) == exits.OK
    assert capsys.readouterr().err == ""


def test_a_check_that_finds_nothing_is_0(root, peer, capsys):
    daemon = peer(check=CHECKED)
    assert main(["check"]) == exits.OK
    assert daemon.asked == [("check", {"workspace": str(root), "repair": False, "progress": True})]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("memctl: 3 sources, 9 chunks checked in 1.2 s: nothing is wrong\n")


def test_a_check_says_why_there_are_fewer_rows_than_chunks(peer, capsys):
    """Equal texts share one; and one may be without, as while it waits for the model."""
    checked = {"rows": 4087, "sharing": 1, "rowless": 2, "chunks": 4090}
    peer(check=CHECKED | {"checked": checked})
    assert main(["check"]) == exits.OK
    said = "4,087 rows (1 chunk of a text that has one already, 2 chunks without one), 4,090 chunks checked"
    assert said in capsys.readouterr().err


def test_each_finding_is_a_line_and_the_exit_code_9(peer, capsys):
    peer(check=CHECKED | {"ok": False, "findings": [STALE, STALE | {"kind": "fts", "text": "a\nb\x1b"}]})
    assert main(["check"]) == exits.UNHEALTHY
    out, err = capsys.readouterr()
    assert out == "stamp: a.md changed and its stamp did not\nfts: a␊b␛\n"
    assert err.endswith("2 findings left; memctl check --repair repairs it\n")


def test_a_repair_says_what_is_mended_and_what_is_left(peer, capsys):
    mended = STALE | {"repaired": True}
    answers = iter([CHECKED | {"findings": [mended]}, CHECKED | {"ok": False, "findings": [mended, STALE]}])
    daemon = peer(check=lambda _: next(answers))
    assert main(["check", "--repair"]) == exits.OK
    assert daemon.asked[0][1]["repair"] is True
    out, err = capsys.readouterr()
    assert out == "stamp: a.md changed and its stamp did not (repaired)\n"
    assert err.endswith("1 finding repaired\n")
    assert main(["check", "--repair"]) == exits.UNHEALTHY
    assert capsys.readouterr().err.endswith("1 finding left; memctl index --rebuild builds a new index\n")


def test_check_json_is_the_answer(peer, capsys):
    answer = CHECKED | {"ok": False, "findings": [STALE]}
    peer(check=answer)
    assert main(["check", "--json"]) == exits.UNHEALTHY
    out, err = capsys.readouterr()
    assert json.loads(out) == answer
    assert "left" not in err


def test_a_purge_tells_how_many_sources_it_deleted(peer, capsys):
    daemon = peer(index=READY | {"purged": 4})
    assert main(["index", "--purge"]) == exits.OK
    assert daemon.asked[0][1]["purge"] is True
    assert ", 4 sources purged, 1.5 s" in capsys.readouterr().out
    assert main(["index"]) == exits.OK
    assert "purge" not in daemon.asked[1][1]
    assert "purged" not in capsys.readouterr().out

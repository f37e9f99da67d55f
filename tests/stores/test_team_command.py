"""`memctl team`: what it prints, what it asks, and with which exit code it ends."""

import json
import sys
import tomllib
from pathlib import Path

import pytest
from daemon_process import until

from memctl import systemd
from memctl.output import status as pages
from memctl.output.page import drawn
from memctl.output.status import team_lines
from memd.config import TeamConfig
from memd.errors import StoreRefusedError
from memd.stores.milvus_client import Clock, Milvus
from stores.team_support import TOKEN


def team(**changes):
    """Return an answer of `team.status`."""
    return {
        "address": "store+tls://replica:7433", "collection": "memd", "reachable": True, "error": "",
        "last_error": "", "last_acknowledged": None, "waiting": 0, "workspaces": [], **changes,
    }  # fmt: skip


def workspace(**changes):
    return {
        "root": "/n", "stage": "published", "sources": 3, "waiting": 0, "refused": [], "model_id": "m",
        "words_only": "", **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (
            team(),
            [
                "store+tls://replica:7433 (memd): answers",
                "no workspace is published: memctl team publish ROOT",
            ],
        ),
        (
            team(
                reachable=False, error="nobody listens", workspaces=[workspace(stage="publishing", waiting=2)]
            ),
            [
                "store+tls://replica:7433 (memd): does not answer",
                "error: nobody listens",
                "/n: is being published, 3 sources in the store, 2 to be sent",
            ],
        ),
        (
            team(last_error="old", workspaces=[workspace(words_only="another model", refused=["too long"])]),
            [
                "store+tls://replica:7433 (memd): answers",
                "last error: old",
                "/n: published, 3 sources in the store",
                "  by words only: another model",
                "  not taken by the store: too long",
            ],
        ),
        (
            team(elsewhere=[{"root": "/n", "address": "store+tls://old:7433 memd"}]),
            [
                "store+tls://replica:7433 (memd): answers",
                "no workspace is published: memctl team publish ROOT",
                "/n: may still be in store+tls://old:7433 memd, which [team] named before: "  # noqa: ISC004
                "name it again, then memctl team unpublish /n",
            ],
        ),
        (
            team(error="no such token"),
            [
                "store+tls://replica:7433 (memd): cannot be used now",
                "error: no such token",
                "no workspace is published: memctl team publish ROOT",
            ],
        ),
        (team(address="", error="[team] uri: wrong"), ["error: [team] uri: wrong"]),
    ],
)
def test_the_page_of_the_status(answer, lines):
    assert team_lines(answer) == lines


def test_a_library_that_is_missing_is_installed_as_memctl_was(monkeypatch):
    """The words of the store without pymilvus, with the command for this environment."""
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    client = Milvus(TeamConfig(uri="http://127.0.0.1:19530"), "")
    with pytest.raises(StoreRefusedError, match="needs the library pymilvus") as caught:
        client.exists("memd", Clock(1.0))
    monkeypatch.setattr(sys, "prefix", "/home/ada/.local/share/uv/tools/memd-search")
    line = f"uv pip install --python {sys.executable} 'pymilvus>=2.6.17,<2.7'"
    assert team_lines(team(error=str(caught.value)))[1].endswith(f": {line}")
    checks = {"ok": False, "checks": [{"name": "team", "ok": False, "detail": str(caught.value)}]}
    assert line in drawn(pages.health(checks))


def test_the_status_of_the_daemon_says_that_text_leaves_the_machine():
    server = {"server": {"version": "1", "pid": 1}, "workspaces": []}
    assert "team" not in drawn(pages.status(server))
    server["server"]["team"] = team(workspaces=[workspace()], waiting=2)
    said = "the text of 1 workspace is published to store+tls://replica:7433; 2 sources to be sent"
    assert said in drawn(pages.status(server))


def test_a_life_with_a_team(member):
    """Publish, check, look, rebuild, unpublish, by the command line alone."""
    ada = member()
    root = ada.folder("notes", {"a.md": "The heron.", "b.md": "The weir."})
    memctl = ada.daemon.memctl
    refused = memctl("team", "publish", str(root))
    assert refused.returncode == 2
    assert f"publish {root}: the text of its notes leaves this machine for {ada.server.uri}" in refused.stderr
    assert "--yes" in refused.stderr
    assert ada.texts() == {}
    done = memctl("team", "publish", str(root), "--yes")
    assert (done.returncode, done.stdout) == (0, f"{root}: published, 2 sources\n")
    assert ada.texts() == {"a.md": "The heron.", "b.md": "The weir."}
    done = memctl("team")
    assert done.returncode == 0
    assert f"{root}: published, 2 sources in the store" in done.stdout
    assert f"the text of 1 workspace is published to {ada.server.uri}" in memctl("status").stdout
    assert "team" in memctl("health").stdout
    done = memctl("team", "check")
    assert (done.returncode, done.stderr) == (0, "memctl: 2 sources compared: all equal\n")
    stored = ada.stored()["a.md"]
    ada.client.remove(((stored.key, stored.revision),), 10)
    done = memctl("team", "check")
    assert (done.returncode, done.stdout) == (9, f"missing: a.md in {root}\n")
    assert "1 difference; memctl team check --repair" in done.stderr
    done = memctl("team", "check", str(root), "--repair", "--json")
    assert (done.returncode, json.loads(done.stdout)["repaired"]) == (0, True)
    until(lambda: sorted(ada.texts()) == ["a.md", "b.md"])
    done = memctl("team", "rebuild", "--json")
    assert json.loads(done.stdout) == {"roots": [str(root)], "waiting": 2}
    done = memctl("team", "unpublish", str(root))
    assert done.stdout == f"{root}: removed from the team's store; its notes here were not touched\n"
    assert ada.texts() == {}


def test_what_is_not_published_is_not_removed(member):
    """A folder that does not exist, a workspace that never was published, and one that is no more."""
    ada = member()
    root = ada.folder("notes", {"a.md": "The heron."})
    for folder in (root.parent / "nope", root):
        done = ada.daemon.memctl("team", "unpublish", str(folder))
        assert (done.returncode, done.stdout) == (5, "")
        assert f"{folder} is not published: memctl team status" in done.stderr
    ada.publish(root)
    assert ada.daemon.memctl("team", "unpublish", str(root)).returncode == 0
    assert ada.daemon.memctl("team", "unpublish", str(root)).returncode == 5


def test_a_store_that_refuses_is_told_without_a_publication(member):
    """By status and check, after a search or before any; a store that answers is told, too."""
    ada, eve = member("ada"), member("eve", token="unknown-token")
    root = eve.folder("notes", {"a.md": "The heron."})
    done = eve.daemon.memctl("team", "check")
    assert done.returncode == 9
    assert "this token is not known" in done.stderr
    assert eve.daemon.memctl("search", "--team", "heron", cwd=root).returncode == 0
    assert "this token is not known" in eve.daemon.call("status")["server"]["team"]["error"]
    done = eve.daemon.memctl("team", "status")
    assert done.returncode == 9
    assert "error: the store at" in done.stdout
    assert "this token is not known" in done.stdout
    done = ada.daemon.memctl("team", "status")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, f"{ada.server.uri} (memd): answers")


def test_without_a_team_each_action_says_what_to_do(daemon, tmp_path):
    for action in (["status"], ["publish", str(tmp_path), "--yes"], ["check"], ["rebuild"]):
        done = daemon.memctl("team", *action)
        assert done.returncode != 0
        assert "no team is configured: write [team] and uri = " in done.stderr
    assert not (daemon.home / "config" / "memd" / "config.toml").exists()


def test_a_wrong_team_ends_as_a_wrong_configuration(member):
    """Each action with the same code, and with the file."""
    ada = member()
    root = ada.folder("notes", {"a.md": "The heron."})
    ada.config.write_text("[team]\nshare = []\n")
    for action in (
        ["status"],
        ["publish", str(root), "--yes"],
        ["unpublish", str(root)],
        ["check"],
        ["rebuild"],
    ):
        done = ada.daemon.memctl("team", *action)
        assert done.returncode == 8
        assert f"{ada.config}: [team] needs uri = " in done.stdout + done.stderr


def test_a_team_that_was_just_written_is_used_at_once(member):
    """A daemon that runs does not have to be restarted, nor if the address changes."""
    ada = member()
    root = ada.folder("notes", {"a.md": "The heron."})
    named = ada.config.read_text()
    ada.config.write_text("")
    assert "no team is configured" in ada.daemon.memctl("team").stderr
    ada.config.write_text(named)
    done = ada.daemon.memctl("team", "publish", str(root), "--yes")
    assert (done.returncode, done.stdout) == (0, f"{root}: published, 1 source\n")
    ada.config.write_text(ada.config.read_text().replace("[team]\n", '[team]\ncollection = "second"\n'))
    assert "(second)" in ada.daemon.memctl("team").stdout


def test_a_token_that_was_mended_is_used_at_once(member):
    """By the next search or status: its mode, a file that was missing, and a token that the store refused."""
    ada = member(token="unknown-token")
    root = ada.folder("notes", {"a.md": "The heron."})
    token = Path(tomllib.loads(ada.config.read_text())["team"]["token_file"])
    told = ada.daemon.memctl("team")
    assert (told.returncode, "is not known" in told.stdout) == (9, True)

    def degraded():
        return ada.daemon.call("search", workspace=str(root), query="heron", scope="team")["degraded"]

    assert degraded() == ["store-away"]
    token.write_text(TOKEN)
    assert degraded() == []
    token.chmod(0o644)
    told = ada.daemon.memctl("team")
    assert (told.returncode, "chmod 600" in told.stdout) == (8, True)
    token.chmod(0o600)
    assert degraded() == []
    token.unlink()
    assert ada.daemon.memctl("team").returncode == 8
    token.write_text(TOKEN)
    token.chmod(0o600)
    assert ada.daemon.memctl("team").returncode == 0


def test_what_is_no_workspace_is_not_published(member):
    """Neither a folder inside of one, nor one that is not registered."""
    ada = member()
    root = ada.folder("notes", {"sub/a.md": "The heron."})
    for folder in (root / "sub", ada.daemon.home):
        done = ada.daemon.memctl("team", "publish", str(folder), "--yes")
        assert done.returncode != 0
        assert str(folder) in done.stderr
        assert "workspaces remove" not in done.stderr
        is_inside = (
            f"it is in {root}, which is not changed. To publish all of that: memctl team publish {root}"
        )
        assert (is_inside in done.stderr) == (folder == root / "sub")
    assert "share" not in ada.config.read_text()


@pytest.mark.parametrize(
    ("uri", "is_wanted"),
    [
        ("store+tls://replica:7433", True),
        ("https://milvus:19530", True),
        ("store+unix:///run/store", False),
        ("milvus+lite:///home/ada/team.db", False),
        ("", False),
    ],
)
def test_systemd_opens_the_network_for_a_store_that_is_on_it(tmp_path, monkeypatch, uri, is_wanted):
    """By the drop-in of `memctl service install`, which says for whom."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = tmp_path / "config" / "memd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[team]\nuri = "{uri}"\n' if uri else "team = 3\n")
    units = tmp_path / "units"
    units.mkdir()
    assert bool(systemd.advice(units, tmp_path)) == is_wanted
    assert bool(systemd.update(units, tmp_path)) == is_wanted
    if is_wanted:
        text = systemd.drop_in(units).read_text()
        assert str(config) in text
        assert "\nRestrictAddressFamilies=AF_INET AF_INET6\n" in text
    assert systemd.advice(units, tmp_path) is None
    config.write_text("")
    assert systemd.update(units, tmp_path) == []
    assert list(units.iterdir()) == []

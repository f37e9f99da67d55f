"""[team] of the configuration, `memctl team`, and daemons whose store does not answer, without Milvus."""

import os
import socket
import sys
import time

import pytest
from daemon_process import Daemon, folder_of, until

from memctl import systemd
from memctl.client import RpcError
from memctl.output import status as pages
from memctl.output.page import drawn
from memctl.output.status import team_lines
from memd.config import TeamConfig, UserConfig, load_team_config, load_user_config, team_token, write_shared
from memd.errors import ConfigError, StoreRefusedError
from memd.team.identity import Identity, Publication
from memd.team.milvus import Milvus
from team.members import Member

URI = 'uri = "https://milvus.example:19530"'


@pytest.fixture
def member(tmp_path):
    """Make daemons of a team; nobody listens at its address."""
    made = []

    def make(name="ada", uri="http://127.0.0.1:9", **settings):
        made.append(Member(tmp_path / name, uri, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


# The configuration


def load(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load_team_config(path)


def test_a_team_that_is_configured_right(tmp_path):
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    given = {"token_file": "~/t", "ca": str(ca), "database": "d", "collection": "c", "name": "n"}
    lines = [f'{key} = "{value}"\n' for key, value in given.items()]
    text = f"[team]\n{URI}\nshare = ['/n']\n{''.join(lines)}"
    assert load(tmp_path, text) == TeamConfig(uri=URI.split('"')[1], share=("/n",), **given)
    for uri in (
        "http://127.0.0.1:1",
        "http://localhost",
        "https://[::1]:7433/",
        "milvus+lite:///home/ada/team.db",
    ):
        assert load(tmp_path, f'[team]\nuri = "{uri}"\n').uri == uri
    assert load(tmp_path, "models = []\n") is None
    assert load_team_config(tmp_path / "none.toml") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("team = 3", r"team is no table: write \[team\]"),
        ("[team]", r'config.toml: \[team\] needs uri = "https://HOST:PORT"$'),
        ('[team]\nurl = "x"', r"\[team\] url: unknown key; allowed are uri, token_file,"),
        ("[team]\nuri = 3", r"\[team\] uri = 3: expected str, got int"),
        ('[team]\nuri = "milvus:19530"', "begins with none of https://, http://, milvus\\+lite://"),
        ('[team]\nuri = "store+tls://replica:1"', "begins with none of"),
        ('[team]\nuri = "https://milvus:x"', "is not an address"),
        ('[team]\nuri = "https://:19530"', "names no host: https://HOST:PORT"),
        ('[team]\nuri = "https://milvus/path"', "names no host"),
        ('[team]\nuri = "milvus+lite://file"', r"names no file: milvus\+lite:///PATH"),
        ('[team]\nuri = "https://ada:secret@milvus"', "holds a name or a password"),
        ('[team]\nuri = "http://milvus:19530"', "would send notes readably over the network: use https://"),
        ('[team]\nuri = "http://127.0.0.1.example"', "would send notes readably"),
        ('[team]\nuri = "http://127.0.0.1:1"\nca = "/none"', "does not use TLS"),
        (f'[team]\n{URI}\nca = "/none"', "ca = '/none' is no file"),
        (f'[team]\n{URI}\nshare = ["n"]', "share = 'n': expected the absolute path"),
    ],
)
def test_a_fault_is_told_in_one_line(tmp_path, text, told):
    with pytest.raises(ConfigError, match=told) as error:
        load(tmp_path, text)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)
    assert load_user_config(tmp_path / "config.toml") == UserConfig()


@pytest.mark.parametrize("kind", ["folder", "pipe", "nothing", "open"])
def test_a_token_that_is_no_file_of_the_users_is_told_in_one_line(tmp_path, kind):
    token = tmp_path / "token"
    match kind:
        case "folder":
            token.mkdir()
        case "pipe":
            os.mkfifo(token)
        case "open":
            token.write_text("secret")
            token.chmod(0o644)
    with pytest.raises(ConfigError, match=f"token_file = '{token}' (is not a|cannot|has mode)") as error:
        team_token(TeamConfig(uri=URI.split('"')[1], token_file=str(token)))
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


def test_what_is_shared_is_written_without_losing_a_comment(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(f'# Mine\n[team]\n{URI}  # ours\nshare = ["/a"]\n')
    write_shared(path, "/b", is_shared=True)
    assert path.read_text() == f'# Mine\n[team]\n{URI}  # ours\nshare = ["/a", "/b"]\n'
    write_shared(path, "/a", is_shared=False)
    assert load_team_config(path).share == ("/b",)


# The pages


def team(**changes):
    """Return an answer of `team.status`."""
    return {
        "address": "https://milvus:1", "collection": "memd", "reachable": True, "error": "", "last_error": "",
        "last_acknowledged": None, "waiting": 0, "workspaces": [], **changes,
    }  # fmt: skip


def workspace(**changes):
    return {
        "root": "/n", "stage": "published", "sources": 3, "waiting": 0, "refused": [], "model_id": "m",
        "words_only": "", **changes,
    }  # fmt: skip


LEFT = "old notes␛[0m: left in the store by this login and machine: memctl team unpublish 'old notes␛[0m'"
MOVED = (
    "/n: may still be in https://old:1 memd, which [team] named before: name it again, "
    "then memctl team unpublish /n"
)
NOBODY = "no workspace is published: memctl team publish ROOT"


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (team(), ["answers", NOBODY]),
        (
            team(reachable=False, error="closed", workspaces=[workspace(stage="publishing", waiting=2)]),
            ["does not answer", "error: closed",
             "/n: is being published, 3 sources in the store, 2 to be sent"],
        ),
        (
            team(last_error="old", workspaces=[workspace(words_only="another model", refused=["too long"])]),
            ["answers", "last error: old", "/n: published, 3 sources in the store",
             "  by words only: another model", "  not taken: too long"],
        ),
        (
            team(workspaces=[workspace(root="old notes\x1b[0m", stage="left", sources=0)]),
            ["answers", LEFT],
        ),
        (
            team(elsewhere=[{"root": "/n", "address": "https://old:1 memd"}]),
            ["answers", NOBODY, MOVED],
        ),
        (team(error="no such token"), ["cannot be used now", "error: no such token", NOBODY]),
    ],
)  # fmt: skip
def test_the_page_of_the_status(answer, lines):
    """Nothing that comes from a store moves the cursor or becomes a link."""
    assert team_lines(answer) == [f"https://milvus:1 (memd): {lines[0]}", *lines[1:]]
    assert team_lines(team(address="", error="[team] uri: wrong")) == ["error: [team] uri: wrong"]


def test_a_library_that_is_missing_is_installed_as_memctl_was(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        milvus = Milvus(TeamConfig(uri=f"http://127.0.0.1:{listener.getsockname()[1]}"))
        with pytest.raises(StoreRefusedError, match="needs the library pymilvus") as caught:
            milvus.exists(1.0)
    monkeypatch.setattr(sys, "prefix", "/home/ada/.local/share/uv/tools/memd-search")
    line = f"uv pip install --python {sys.executable} 'pymilvus>=2.6.17,<2.7'"
    assert team_lines(team(error=str(caught.value)))[1].endswith(f": {line}")
    checks = {"ok": False, "checks": [{"name": "team", "ok": False, "detail": str(caught.value)}]}
    assert line in drawn(pages.health(checks))


def test_the_status_of_the_daemon_says_that_text_leaves_the_machine():
    server = {"server": {"version": "1", "pid": 1}, "workspaces": []}
    assert "team" not in drawn(pages.status(server))
    server["server"]["team"] = team(workspaces=[workspace()], waiting=2)
    said = "the text of 1 workspace is published to https://milvus:1; 2 sources to be sent"
    assert said in drawn(pages.status(server))


# Daemons


def test_without_a_team_each_action_says_what_to_do(tmp_path):
    (tmp_path / "home").mkdir()
    daemon = Daemon(tmp_path / "home").start()
    try:
        for action in (["status"], ["publish", str(tmp_path), "--yes"], ["check"]):
            done = daemon.memctl("team", *action)
            assert done.returncode != 0
            assert "no team is configured: write [team] and uri = " in done.stderr
    finally:
        daemon.close()


def test_a_store_that_does_not_answer_is_told_within_two_seconds(member, tmp_path):
    ada = member()
    root = ada.folder("marsh", {"bittern.md": "# Bittern\n\nThe bittern booms."})
    for uri, told in (
        ("http://127.0.0.1:9", "Connection refused"),
        ("https://no-such-host.invalid:1", "https://no-such-host.invalid:1: "),
        (f"milvus+lite://{tmp_path}/none/team.db", "none cannot be written: No such file or directory"),
    ):
        ada.config.write_text(f'[team]\nuri = "{uri}"\n')
        began = time.monotonic()
        answer = ada.status()
        assert time.monotonic() - began < 2
        assert told in answer["error"]
        done = ada.daemon.memctl("team")
        assert done.returncode == 9
        assert told in done.stdout
        done = ada.daemon.memctl("team", "publish", str(root), "--yes")
        assert done.returncode == 9
        assert told in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_search_without_its_store_answers_from_the_own_workspace(member):
    ada = member()
    root = ada.folder("marsh", {"bittern.md": "# Bittern\n\nThe bittern booms."})
    published = ada.daemon.memctl("team", "publish", str(root), "--yes")
    assert published.returncode == 9
    assert "Connection refused" in published.stderr
    ada.save(root, "eel.md", "# Eel\n\nThe eel hides.")
    for method in ("search", "recall"):
        answer = ada.daemon.call(method, workspace=str(root), query="eel", scope="team", sync=True)
        assert "store-away" in answer["degraded"]
        assert "eel.md" in str(answer)
    assert not ada.config.with_name("team.json").exists()
    with pytest.raises(RpcError, match="cannot be explained"):
        ada.daemon.call("search", workspace=str(root), query="eel", scope="team", explain=True)


def test_what_a_store_that_is_away_still_has_is_told_and_removed_later(member):
    """By the file beside config.toml: the workspace is published no more, and what is there is withdrawn."""
    ada = member()
    root = ada.folder("marsh", {"bittern.md": "The bittern booms."})
    ada.daemon.stop()
    known = Publication("0" * 32, f"{ada.uri}  memd", str(root), "")
    Identity(ada.config.parent).remember(known)
    ada.daemon.start()
    for _ in range(2):
        done = ada.daemon.memctl("team", "unpublish", str(root), "--yes")
        assert done.returncode == 9
        assert f"{root}: still in the team's store; it will be removed when that answers" in done.stdout
        assert "Connection refused" in done.stderr
        assert [one["stage"] for one in ada.status()["workspaces"]] == ["withdrawing"]
        assert Identity(ada.config.parent).published(known.address) == [known]


def test_a_wrong_team_ends_as_a_wrong_configuration(member):
    ada = member()
    root = ada.folder("notes", {"a.md": "The heron."})
    ada.config.write_text("[team]\nshare = []\n")
    for action in (["status"], ["publish", str(root), "--yes"], ["unpublish", str(root)], ["check"]):
        done = ada.daemon.memctl("team", *action)
        assert done.returncode == 8
        assert f"{ada.config}: [team] needs uri = " in done.stdout + done.stderr


def test_what_is_no_workspace_is_not_published(member):
    ada = member()
    root = ada.folder("notes", {"sub/a.md": "The heron."})
    for folder in (root / "sub", ada.daemon.home):
        done = ada.daemon.memctl("team", "publish", str(folder), "--yes")
        assert done.returncode != 0
        assert str(folder) in done.stderr
        assert "workspaces remove" not in done.stderr
        done = ada.daemon.memctl("team", "unpublish", str(folder))
        assert done.returncode == 5
        assert f"{folder} is not published: memctl team status" in done.stderr
    assert "share" not in ada.config.read_text()


def test_a_workspace_cannot_publish_itself(member):
    """Its own configuration, which may come with a clone, has no such key; nor does a token in it count."""
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    (root / "memory" / "team-id").write_text("0" * 32)
    config = root / "memory" / "config.toml"
    config.write_text(f'[team]\nuri = "http://127.0.0.1:9"\nshare = ["{root}"]\n')
    with pytest.raises(RpcError, match="team: unknown key"):
        until(lambda: ada.daemon.call("get", path="a.md") is None)
    config.write_text('provider = "none"\n')
    until(lambda: ada.daemon.found("one") == ["a.md"])
    assert ada.status()["workspaces"] == []


def test_an_agent_cannot_publish(member):
    ada = member()
    root = ada.folder("notes", {"a.md": "one"})
    for name in ("publish", "unpublish"):
        with pytest.raises(RpcError, match="is for people"):
            ada.daemon.call(f"team.{name}", path=str(root), agent=True)
    for name in ("status", "check"):
        with pytest.raises(RpcError, match="is for people"):
            ada.daemon.call(f"team.{name}", agent=True)
    assert "team" not in ada.daemon.call("status", agent=True)["server"]


@pytest.mark.parametrize(
    ("uri", "is_wanted"),
    [("https://milvus:19530", True), ("milvus+lite:///home/ada/team.db", False), ("", False)],
)
def test_systemd_opens_the_network_for_a_store_that_is_on_it(tmp_path, monkeypatch, uri, is_wanted):
    """By the drop-in of `memctl service install`, which says for whom."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config = tmp_path / "config" / "memd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[team]\nuri = "{uri}"\n' if uri else "team = 3\n")
    units = folder_of(tmp_path / "config/systemd/user")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert bool(systemd.advice()) == is_wanted
    assert bool(systemd.update()) == is_wanted
    if is_wanted:
        text = systemd.drop_in().read_text()
        assert str(config) in text
        assert "\nRestrictAddressFamilies=AF_INET AF_INET6\n" in text
    assert systemd.advice() is None
    config.write_text("")
    assert systemd.update() == []
    assert list(units.iterdir()) == []

"""[team] of the user's configuration: one clear line for each fault, and nothing else is affected by it."""

import os
from pathlib import Path

import pytest
from daemon_process import until

from memd.config import (
    TeamConfig,
    UserConfig,
    load_team_config,
    load_user_config,
    team_token,
    write_shared,
)
from memd.errors import ConfigError

URI = 'uri = "store+tls://replica.example:7433"'


def load(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load_team_config(path)


def test_without_the_table_there_is_no_team(tmp_path):
    assert load_team_config(tmp_path / "none.toml") is None
    assert load(tmp_path, "models = []\n") is None


def test_a_team_that_is_configured_right(tmp_path):
    """Every key, and every kind of address."""
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    text = (
        f'[team]\n{URI}\ntoken_file = "~/t"\nca = "{ca}"\ndatabase = "d"\ncollection = "c"\nshare = ["/n"]\n'
    )
    assert load(tmp_path, text) == TeamConfig(
        uri="store+tls://replica.example:7433", token_file="~/t", ca=str(ca), database="d", collection="c",
        share=("/n",),
    )  # fmt: skip
    for uri in (
        *("store://replica:7433", "store://127.0.0.1:1", "store+unix:///run/store", "http://milvus:19530"),
        *("https://milvus.example:19530/", "milvus+lite:///home/ada/team.db", "store+tls://[::1]:7433"),
    ):
        assert load(tmp_path, f'[team]\nuri = "{uri}"\n').uri == uri


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("team = 3", r"team is no table: write \[team\]"),
        ("[team]", r'config.toml: \[team\] needs uri = "store\+tls://HOST:PORT"$'),
        ('[team]\nurl = "x"', r"\[team\] url: unknown key; allowed are uri, token_file,"),
        (f"[team]\n{URI}\nkey = 1", r"\[team\] key: unknown key; allowed are uri, token_file,"),
        ("[team]\nuri = 3", r"\[team\] uri = 3: expected str, got int"),
        ('[team]\nuri = "replica:7433"', "begins with none of store://, store\\+tls://"),
        ('[team]\nuri = "ftp://replica"', "begins with none of"),
        ('[team]\nuri = "store://replica:x"', "is not an address"),
        ('[team]\nuri = "store://:7433"', "names no host: store://HOST:PORT"),
        ('[team]\nuri = "store+tls://replica/path"', "names no host"),
        ('[team]\nuri = "store+unix://store"', "names no file: store\\+unix:///PATH"),
        ('[team]\nuri = "milvus+lite:///"', "names no file"),
        ('[team]\nuri = "https://ada:secret@milvus"', "holds a name or a password"),
        ('[team]\nuri = "ada:secret@milvus:x"', "holds a name or a password"),
        (
            '[team]\nuri = "store://replica:1"\ntoken_file = "/t"',
            "token readably over the network: use store\\+tls",
        ),
        ('[team]\nuri = "http://replica:1"\ntoken_file = "/t"', "token readably over the network: use https"),
        ('[team]\nuri = "store://127.0.0.1:1"\nca = "/none"', "does not use TLS"),
        (f'[team]\n{URI}\nca = "/none"', "ca = '/none' is no file"),
        (f'[team]\n{URI}\nshare = "/n"', "share = '/n': expected array, got str"),
        (f'[team]\n{URI}\nshare = ["n"]', "share = 'n': expected the absolute path"),
        (f"[team]\n{URI}\nshare = [1]", r"share\[0\] = 1: expected str, got int"),
    ],
)
def test_a_fault_is_told_in_one_line(tmp_path, text, told):
    """With the key and its value, and never with a password."""
    with pytest.raises(ConfigError, match=told) as error:
        load(tmp_path, text)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)
    assert "secret" not in str(error.value)
    assert load_user_config(tmp_path / "config.toml") == UserConfig()


@pytest.mark.parametrize(
    ("raw", "mode", "told"),
    [
        (b"token", 0o644, "mode 0644: others may read it. chmod 600"),
        (b"token", 0o620, "mode 0620"),
        (b"", 0o600, "holds no token"),
        (b"\xff\xfe", 0o600, "holds no token"),
        (b"two\nlines", 0o600, "holds no token"),
        (b"x" * 10_000, 0o600, "holds no token"),
        (None, 0, "cannot be read: No such file"),
    ],
)
def test_a_token_that_cannot_be_used_is_told(tmp_path, raw, mode, told):
    path = tmp_path / "token"
    if raw is not None:
        path.write_bytes(raw)
        path.chmod(mode)
    with pytest.raises(ConfigError, match=told):
        team_token(TeamConfig(uri="store+unix:///s", token_file=str(path)))


def test_a_token_file_that_is_a_folder_is_told_and_closed(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ConfigError, match="is not a regular file"):
        team_token(TeamConfig(uri="store+unix:///s", token_file=str(tmp_path)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_token_is_one_line(tmp_path):
    path = tmp_path / "token"
    path.write_text(" abc123\n")
    path.chmod(0o600)
    assert team_token(TeamConfig(uri="store+unix:///s", token_file=str(path))) == "abc123"
    assert team_token(TeamConfig(uri="store+unix:///s")) == ""
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="not a regular file"):
        team_token(TeamConfig(uri="store+unix:///s", token_file=str(tmp_path / "pipe")))


def test_sharing_keeps_the_rest_of_the_file(tmp_path):
    """Comments, order and other keys; what is named twice is named once."""
    path = tmp_path / "config.toml"
    path.write_text('# mine\nmodels = ["/m"]\n\n[team]  # ours\nuri = "store+unix:///s"  # here\n')
    path.chmod(0o640)
    write_shared(path, "/a", is_shared=True)
    write_shared(path, "/b", is_shared=True)
    write_shared(path, "/a", is_shared=True)
    assert load_team_config(path).share == ("/b", "/a")
    write_shared(path, "/b", is_shared=False)
    assert path.read_text() == (
        '# mine\nmodels = ["/m"]\n\n[team]  # ours\nuri = "store+unix:///s"  # here\nshare = ["/a"]\n'
    )
    assert path.stat().st_mode & 0o777 == 0o640
    path.write_text("models = []\n")
    with pytest.raises(ConfigError, match=r"no team is configured: write \[team\]"):
        write_shared(path, "/a", is_shared=True)


def test_a_wrong_team_leaves_everything_else_as_it_is(member):
    """Searches, saves and status go on; the fault is shown, and gone when the file is right."""
    ada = member()
    root = ada.folder("notes", {"a.md": "The heron."})
    right = ada.config.read_text()
    for wrong, told in (
        (right.replace("store+unix:", "ftp:"), "begins with none of"),
        (right + "unknown = 1\n", "unknown key"),
        (right + f'share = ["{root}/nothing"]\n', ""),
    ):
        ada.config.write_text(wrong)
        ada.daemon.stop()
        ada.daemon.start()
        assert ada.daemon.found("heron") == ["a.md"]
        if told:
            until(lambda told=told: told in ada.status()["error"])
            health = ada.daemon.call("health")
            assert [one["ok"] for one in health["checks"]] == [True, False]
        else:
            until(lambda: [one["stage"] for one in ada.status()["workspaces"]] == ["unknown"])
    ada.config.write_text(right)
    ada.daemon.stop()
    ada.daemon.start()
    until(lambda: ada.status()["error"] == "")
    assert ada.publish(root)["done"]


def test_nothing_of_a_team_is_loaded_without_one(daemon, tmp_path):
    """A daemon whose user has no [team] has none of it in memory, whatever is asked, and tells nothing."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "note.md").write_text("The heron nests.\n")
    daemon.add(root)
    daemon.stop()
    daemon.log_path.unlink()
    daemon.start(PYTHONPROFILEIMPORTTIME="1")
    assert daemon.found("heron", mode="keyword") == ["note.md"]
    answer = daemon.call("status")
    assert "team" not in answer["server"]
    assert [one["name"] for one in daemon.call("health")["checks"]] == [str(root)]
    assert "team" not in answer["server"]["errors"]
    loaded = {line.rpartition("|")[2].strip() for line in daemon.log().splitlines() if "|" in line}
    assert "memd.daemon" in loaded
    assert not [name for name in loaded if name.startswith("memd.stores")]
    assert "team" not in daemon.call("debug", lag_s=0.0)["threads"]
    assert not (daemon.state / "team.json").exists()

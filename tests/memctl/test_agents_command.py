"""`memctl agents`: what it writes into clients' configurations, and that it takes exactly that away."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import forked
import pytest
from patience import PATIENCE, ran

from memctl import config_file, exits
from memctl.__main__ import main
from memctl.agents import json_splice
from memctl.commands.editors import PLUGINS
from memctl.config_file import FileChange
from memctl.exits import CommandError

# client: its files, and what may stand in them before
FILES = {
    "claude-code": {
        ".claude.json": '{\n  "numStartups": 7,\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}',
        ".claude/settings.json": (
            '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"type": "command", '
            '"command": "say done"}]}\n    ]\n  }\n}\n'
        ),
    },
    "codex": {
        ".codex/config.toml": (
            '# mine\nmodel = "x"   # a model\n\n[mcp_servers.other]\nurl = "x"\n\n[tui]\na = 1\n'
        ),
        ".codex/hooks.json": '{"hooks": {"Stop": []}}\n',
    },
    "cursor": {
        ".cursor/mcp.json": '{\n\t"mcpServers": {}\n}\n',
        ".cursor/hooks.json": '{"version": 2, "hooks": {"stop": [{"command": "say done"}]}}\n',
    },
    "vscode": {
        "config/Code/User/mcp.json": '\ufeff{\r\n    "servers": {},\r\n    "inputs": []\r\n}',
        ".copilot/hooks/memd.json": None,
    },
    "copilot": {".copilot/mcp-config.json": '{"mcpServers": {}}', ".copilot/hooks/memd.json": None},
    "claude-desktop": {"config/Claude/claude_desktop_config.json": '{"globalShortcut": ""}'},
    "windsurf": {".codeium/windsurf/mcp_config.json": '{"mcpServers": {"other": {"serverUrl": "x"}}}\n'},
    "cline": {".cline/data/settings/cline_mcp_settings.json": '{\n  "mcpServers": {}\n}'},
    "antigravity": {".gemini/config/mcp_config.json": ""},
    "zed": {"config/zed/settings.json": ""},
    "opencode": {
        "config/opencode/opencode.json": '{\n  "$schema": "x"\n}\n',
        "config/opencode/plugins/memd.js": None,
    },
    "openclaw": {
        ".openclaw/openclaw.json": (
            '{\n  "agents": { "defaults": { "workspace": "~/claw" } },\n'
            '  "plugins": {\n    "allow": ["other"],\n    "slots": { "memory": "memory-lancedb" }\n  }\n}\n'
        )
    },
    "gemini": {".gemini/settings.json": '{"selectedAuthType": "x"}'},
}


# The same with comments, or in another form that no program can edit with certainty; @: where the lines go
BY_HAND = {
    "claude-code": (".claude/settings.json", '{\n  "model": "opus", // mine\n@}\n'),
    "codex": (".codex/config.toml", 'mcp_servers = { @ } # mine\nmodel = "x"\n'),
    "gemini": (".gemini/settings.json", '{"a": 1, "a": 2@}'),
    "vscode": ("config/Code/User/mcp.json", '{\r\n    // mine\r\n    "inputs": [],\r\n@\r\n}'),
    "opencode": ("config/opencode/opencode.jsonc", '{\n  "$schema": "x", // mine\n@\n}\n'),
    "openclaw": (".openclaw/openclaw.json", "{\n  x: { y: '~/it\\'s \"c\"', z: 0xFF },\n  a: [],\n@}\n"),
}

# The folders of a home that the paths of memd and of the clients come from.
ENVIRONMENT = {"HOME": "", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "XDG_RUNTIME_DIR": "run"}


@pytest.fixture
def home(tmp_path):
    return tmp_path


def agents(home, *arguments, stdin=subprocess.DEVNULL):
    return memctl(home, "agents", *arguments, stdin=stdin)


def memctl(home, *arguments, stdin=subprocess.DEVNULL):
    """Run memctl in a home."""
    environment = {name: str(home / folder) for name, folder in ENVIRONMENT.items()}
    return forked.run(
        [sys.executable, "-m", "memctl", *arguments],
        env=environment | {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        stdin=stdin, capture_output=True, text=True, timeout=60 * PATIENCE,
    )  # fmt: skip


def tree(home):
    """Every file below, with its bytes and mode."""
    return {
        str(path.relative_to(home)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in home.rglob("*")
        if path.is_file() and home / "state" not in path.parents
    }


def folders(home):
    """Every folder below but for memd's own."""
    return {path for path in home.rglob("*") if path.is_dir() and home / "state" not in (path, *path.parents)}


def write(home, client, mode=0o640):
    """Write the configuration that a client has before."""
    for name, text in FILES[client].items():
        if text is not None:
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            path.chmod(mode)


def states_of(home):
    """What the list says of each client."""
    return {one["name"]: one["state"] for one in json.loads(agents(home, "list", "--json").stdout)["clients"]}


def plain(path):
    """What a configuration says."""
    text = path.read_bytes().decode()
    return tomllib.loads(text) if path.suffix == ".toml" else json_splice.read(text)[0]


@pytest.mark.parametrize("client", FILES)
@pytest.mark.parametrize(("is_there", "options"), [(True, ()), (False, ("--workspace", "/notes"))])
def test_twice_is_as_good_as_once_and_uninstall_leaves_every_byte_as_it_was(home, client, is_there, options):
    """Whether the client had a configuration or not; its modes stay, no backup and no folder is left.

    A second installation changes nothing, nor the backup; one with other options changes only these.
    """
    if is_there:
        write(home, client)
    else:
        (home / ".copilot").mkdir()  # the user's own, though empty
    before, places = tree(home), folders(home)
    done = agents(home, "install", client, "--yes", *options)
    assert done.returncode == 0, done.stderr
    once = tree(home)
    assert set(FILES[client]) <= set(once)
    for name in before:
        assert once[f"{name}.before-memd"] == before[name]
        assert once[name][1] == before[name][1]
    done = agents(home, "install", client, "--yes", *options)
    assert (done.returncode, "already has it" in done.stdout) == (0, True)
    assert tree(home) == once
    if is_there:
        assert agents(home, "install", client, "--yes", "-w", "/elsewhere").returncode == 0
    assert agents(home, "uninstall", client, "--yes").returncode == 0
    assert (tree(home), folders(home)) == (before, places)
    if is_there:
        assert "does not have it" in agents(home, "uninstall", client, "--yes").stdout


@pytest.mark.parametrize("client", ["claude-code", "codex", "openclaw"])
def test_what_others_change_meanwhile_stays(home, client):
    write(home, client)
    wanted = {name: plain(home / name) for name, text in FILES[client].items() if text}
    assert agents(home, "install", client, "--yes").returncode == 0
    for name, said in wanted.items():
        path = home / name
        if path.suffix == ".toml":
            path.write_text(path.read_text() + "\n[later]\nx = 1\n")
            said["later"] = {"x": 1}
        else:
            path.write_bytes(json_splice.put(path.read_bytes().decode(), ["later"], 1).encode())
            said["later"] = 1
    done = agents(home, "uninstall", client, "--yes")
    assert done.returncode == 0, done.stderr
    assert {name: plain(home / name) for name in wanted} == wanted
    for name, text in FILES[client].items():
        after = (home / name).read_text() if text else ""
        for comment in ("# mine", "# a model"):
            assert (comment in after) == (comment in (text or ""))


@pytest.mark.parametrize("client", BY_HAND)
def test_a_file_with_comments_is_left_to_its_owner(home, client):
    name, text = BY_HAND[client]
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_bytes(text.replace(",@", "").replace("@", "").encode())
    before = path.read_bytes()
    done = agents(home, "install", client, "--yes")
    assert (done.returncode, done.stderr) == (11, "")
    assert f"{path} is not edited: " in done.stdout
    again = agents(home, "install", client, "--yes", "--json")
    [told] = json.loads(again.stdout)["by_hand"]
    assert (again.returncode, told["path"], told["lines"] in done.stdout) == (11, str(path), True)
    assert path.read_bytes() == before
    assert not path.with_name(f"{path.name}.before-memd").exists()

    lines = told["lines"].splitlines()[1:] if client == "codex" else [told["lines"].strip()[1:-1]]
    path.write_bytes(text.replace("@", ("," if client == "gemini" else "") + lines[0]).encode())
    pasted = path.read_bytes()
    assert states_of(home)[client] == "installed"
    assert "already has it" in agents(home, "install", client, "--yes").stdout
    done = agents(home, "uninstall", client, "--yes", "--json")
    [told_again] = json.loads(done.stdout)["by_hand"]
    assert (done.returncode, told_again["lines"]) == (11, told["lines"])
    assert path.read_bytes() == pasted


def test_what_is_written_runs_memctl(home):
    done = agents(home, "install", "cursor", "--yes", "-w", "~/notes")
    assert f"there is no folder {home}/notes yet" in done.stderr
    server = plain(home / ".cursor/mcp.json")["mcpServers"]["memd"]
    assert server["args"] == ["mcp", "--workspace", str(home / "notes")]
    done = ran([server["command"], "--version"], check=True)
    assert done.stdout.startswith("memctl ")


def test_claude_code_gets_tools_and_hooks(home):
    write(home, "claude-code")
    agents(home, "install", "claude-code", "--yes")
    assert set(plain(home / ".claude.json")["mcpServers"]) == {"other", "memd"}
    hooks = plain(home / ".claude/settings.json")["hooks"]
    assert set(hooks) == {"Stop", "SessionStart", "UserPromptSubmit", "SessionEnd"}
    assert [len(groups) for groups in hooks.values()] == [1, 1, 1, 1]
    assert hooks["UserPromptSubmit"][0]["hooks"][0]["command"].endswith(
        "memctl hook claude-code UserPromptSubmit"
    )


@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "opencode"])
def test_the_hooks_command_names_the_workspace_of_the_installation(home, client):
    done = agents(home, "install", client, "--yes")
    assert f"elsewhere none: memctl agents install {client} -w DIR" in done.stdout
    done = agents(home, "install", client, "--yes", "-w", "~/my notes")
    gets = (
        "prompts get notes of the workspace around their folder, "
        f"elsewhere of {home}/my notes: the hook's command names it"
    )
    assert gets in done.stdout
    assert gets in agents(home, "list").stdout
    listed = {one["name"]: one for one in json.loads(agents(home, "list", "--json").stdout)["clients"]}
    assert (listed[client]["prompts"], "prompts" in listed["zed"]) == (gets, False)
    written = (home / list(FILES[client])[-1]).read_text()
    assert f"hook {client} " in written
    assert f"--workspace '{home}/my notes'" in written


def test_the_doctor_says_who_has_no_hook(home):
    agents(home, "install", "zed", "--yes")
    done = agents(home, "doctor")
    assert (done.returncode, "zed: installed, no prompt gets notes unasked" in done.stdout) == (0, True)
    assert "no client runs memctl at a prompt" in done.stdout
    assert "cursor: not installed, memctl is not registered" in agents(home, "doctor", "cursor").stdout


def test_a_hook_of_somebody_elses_in_our_group_stays(home):
    agents(home, "install", "claude-code", "--yes")
    path = home / ".claude/settings.json"
    changed = json.loads(path.read_text())
    changed["hooks"]["SessionEnd"][0]["hooks"].append({"type": "command", "command": "say done"})
    path.write_text(json.dumps(changed))
    agents(home, "uninstall", "claude-code", "--yes")
    assert plain(path) == {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "say done"}]}]}}


def test_it_shows_a_diff_and_asks(home):
    write(home, "zed")
    before = tree(home)
    done = agents(home, "install", "zed")
    assert done.returncode == 2
    assert '+    "memd": {' in done.stdout
    assert "--yes" in done.stderr
    done = agents(home, "install", "zed", "--dry-run")
    assert (done.returncode, '+    "memd": {' in done.stdout) == (0, True)
    assert tree(home) == before


@pytest.mark.parametrize(("answer", "written"), [(b"n\n", False), (b"\n", False), (b"y\n", True)])
def test_who_sits_at_a_terminal_is_asked(home, answer, written):
    ours, theirs = os.openpty()
    os.write(ours, answer)
    done = agents(home, "install", "cursor", stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert "Make this change? [y/N]" in done.stderr
    assert (done.returncode, (home / ".cursor/mcp.json").is_file()) == (0 if written else 1, written)


def _link(path):
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def _fifo(path):
    path.unlink()
    os.mkfifo(path)


BAD = {
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "not a regular file"),
    "a fifo": (_fifo, "not a regular file"),
    "no json": (lambda path: path.write_text('{"hooks": '), "line 1 column"),
    "no utf-8": (lambda path: path.write_bytes(b'{"\xff": 1}'), "UTF-8"),
    "an array": (lambda path: path.write_text("[]"), "not an object"),
    "hooks of another kind": (lambda path: path.write_text('{"hooks": {"SessionEnd": {}}}'), "not an array"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_an_unusual_file_is_an_error_and_nothing_is_written(home, kind, action):
    spoil, message = BAD[kind]
    write(home, "claude-code")
    if action == "uninstall":
        agents(home, "install", "claude-code", "--yes")
    path = home / ".claude/settings.json"
    spoil(path)
    before = tree(home)
    done = agents(home, action, "claude-code", "--yes")
    if action == "uninstall" and kind in {"an array", "hooks of another kind"}:
        assert done.returncode == 0  # there is nothing of memd's in it
        return
    assert done.returncode == 8, done.stdout
    assert str(path) in done.stderr
    assert message in done.stderr
    assert tree(home) == before
    if kind not in {"an array", "hooks of another kind"}:
        assert "unreadable" in agents(home, "list").stdout


LOCKED = {
    "a link": (_link, "it is a symbolic link to "),
    "read-only": (lambda path: path.chmod(0o440), "it is read-only (mode 0440)"),
    "another's": (lambda path: os.chown(path, 12345, -1), "it belongs to uid 12345"),
}


@pytest.mark.parametrize("kind", LOCKED)
def test_a_file_that_must_not_be_written_is_read_and_left_to_its_owner(home, kind):
    lock, reason = LOCKED[kind]
    write(home, "claude-code")
    path = home / ".claude/settings.json"
    whole = FILES["claude-code"][".claude/settings.json"]
    lock(path)
    done = agents(home, "install", "claude-code", "--yes")
    assert (done.returncode, done.stderr, path.read_text()) == (11, "", whole)
    assert f"{path} is not edited: {reason}" in done.stdout
    assert f"Make this change by hand:\n\n--- {path}\n+++ {path}\n" in done.stdout
    assert '+            "command": ' in done.stdout
    assert states_of(home)["claude-code"] == "partly"  # its other file could be written

    (home / "open").write_bytes(path.read_bytes())
    path.unlink()
    (home / "open").rename(path)
    agents(home, "install", "claude-code", "--yes")
    installed = path.read_text()
    lock(path)
    [told] = {one["name"]: one for one in json.loads(agents(home, "list", "--json").stdout)["clients"]}[
        "claude-code"
    ]["by_hand"]
    assert (told["path"], told["reason"].startswith(reason)) == (str(path), True)
    assert "memctl hook claude-code SessionEnd" in told["lines"]
    listed = agents(home, "list").stdout
    assert f"{path} stays as it is ({reason}" in listed
    assert "memctl agents uninstall claude-code says what to remove by hand" in listed
    done = agents(home, "uninstall", "claude-code", "--yes")
    assert (done.returncode, path.read_text() == installed) == (11, True)
    assert '-            "command": ' in done.stdout
    assert states_of(home)["claude-code"] == "partly"


def test_vscode_and_copilot_share_a_hook(home):
    agents(home, "install", "copilot", "--yes")
    assert (states_of(home)["copilot"], states_of(home)["vscode"]) == ("installed", "not installed")
    agents(home, "install", "vscode", "--yes")
    agents(home, "uninstall", "copilot", "--yes")
    assert states_of(home)["vscode"] == "partly"
    assert not list((home / ".copilot").rglob("*.json"))


def test_a_warm_hook_asks_the_server_and_is_taken_away_like_any_other(home):
    write(home, "claude-code")
    before = tree(home)
    done = agents(home, "install", "claude-code", "--warm", "--yes", "-w", "/notes")
    assert "elsewhere of /notes: the hook's command names it" in done.stdout
    path = home / ".claude/settings.json"
    [group] = plain(path)["hooks"]["UserPromptSubmit"]
    assert (group["hooks"][0]["type"], group["hooks"][0]["server"]) == ("mcp_tool", "memd")
    assert group["hooks"][0]["input"]["session_id"] == "${session_id}"
    assert (
        "already has it" in agents(home, "install", "claude-code", "--warm", "--yes", "-w", "/notes").stdout
    )
    agents(home, "install", "claude-code", "--yes")
    assert len(plain(path)["hooks"]["UserPromptSubmit"]) == 1
    assert '"mcp_tool"' not in path.read_text()
    agents(home, "install", "claude-code", "--warm", "--yes")
    assert agents(home, "uninstall", "claude-code", "--yes").returncode == 0
    assert tree(home) == before
    assert "leave out --warm" in agents(home, "install", "codex", "--warm", "--yes").stderr


def test_the_plugin_for_claude_code_has_what_install_writes(home):
    folder = Path(agents(home, "plugin").stdout.strip())
    agents(home, "install", "claude-code", "--yes")
    own = plain(home / ".claude/settings.json"), {"mcpServers": plain(home / ".claude.json")["mcpServers"]}
    memctl = own[1]["mcpServers"]["memd"]["command"]
    found = plain(folder / "hooks/hooks.json"), plain(folder / ".mcp.json")
    assert list(found) == json.loads(json.dumps(own).replace(json.dumps(memctl)[1:-1], "memctl"))
    marketplace = plain(folder / ".claude-plugin/marketplace.json")
    assert [(one["name"], one["source"]) for one in marketplace["plugins"]] == [("memd", "./")]


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"memd": {"command": "other"}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.memd]\ncommand = "other"\n'),
        ("opencode", "config/opencode/plugins/memd.js", "// another plugin\n"),
    ],
)
def test_somebody_elses_entry_of_the_same_name_is_left_alone(home, client, name, text):
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    done = agents(home, "install", client, "--yes")
    assert done.returncode == 8
    assert "rename or remove it" in done.stderr
    assert agents(home, "uninstall", client, "--yes").returncode == 0
    assert tree(home) == {name: (text.encode(), stat.S_IMODE(path.stat().st_mode))}


def test_openclaw_gets_the_plugin_of_its_memory_slot(home):
    write(home, "openclaw")
    agents(home, "install", "openclaw", "--yes", "-w", "/notes")
    plugins = plain(home / ".openclaw/openclaw.json")["plugins"]
    assert plugins["slots"] == {"memory": "memd"}
    assert plugins["allow"] == ["other", "memd"]
    assert plugins["entries"]["memd"]["config"]["workspace"] == "/notes"
    (folder,) = plugins["load"]["paths"]
    assert json.loads((Path(folder) / "openclaw.plugin.json").read_text())["id"] == "memd"
    assert (Path(folder) / "index.js").is_file()
    path = home / ".openclaw/openclaw.json"
    path.write_text(json_splice.put(path.read_text(), ["later"], 1))
    agents(home, "uninstall", "openclaw", "--yes")
    assert plain(path)["plugins"] == {"allow": ["other"], "slots": {"memory": "memory-lancedb"}}


def test_the_second_file_cannot_be_written(home):
    """Then the first is as it was: a client is registered wholly or not at all."""
    write(home, "claude-code")
    (home / ".claude/settings.json").unlink()
    shutil.rmtree(home / ".claude")
    (home / ".claude").write_text("in the way")
    before = tree(home)
    done = agents(home, "install", "claude-code", "--yes")
    assert done.returncode == 8, done.stdout
    assert tree(home) == before


@pytest.mark.parametrize("rival", ["before", "between"])
def test_a_file_that_its_client_changes_meanwhile_is_left_as_that_wrote_it(home, monkeypatch, rival):
    first, second = home / "first", home / "second"
    for path in (first, second):
        path.write_text("{}")
    changes = [FileChange(path, b"{}", b'{"memd": 1}', "make") for path in (first, second)]
    if rival == "before":
        second.write_text('{"new": 1}')
    else:  # while the bytes of the new file are on their way to the disk
        done = os.fsync
        writes = []

        def fsync(descriptor):
            done(descriptor)
            writes.append(descriptor)
            if (
                len(writes) == 7
            ):  # of first, its backup and their folder, of the second's backup, then its own
                second.write_text('{"new": 1}')

        monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CommandError, match="second is not changed: it was changed just now"):
        config_file.apply(changes)
    assert {path.name: path.read_text() for path in home.iterdir()} == {"first": "{}", "second": '{"new": 1}'}


def test_a_file_that_cannot_be_written_is_named_without_a_cure_for_memds_own_files():
    path = Path("/dev/null/memd/mcp.json")
    for fail in (
        lambda: config_file.read(path),
        lambda: config_file.apply([FileChange(path, None, b"", "make")]),
    ):
        with pytest.raises(CommandError, match=f"^{path} is not changed: /dev/null is a device$"):
            fail()


def test_the_list_says_who_has_it(home):
    agents(home, "install", "claude-code", "--yes")
    agents(home, "install", "codex", "--yes")
    (home / ".codex/hooks.json").unlink()
    states = states_of(home)
    assert states.pop("claude-code") == "installed"
    assert states.pop("codex") == "partly"
    assert set(states.values()) == {"not installed"}
    assert agents(home).stdout.startswith("claude-code    installed ")


def test_the_environment_names_other_folders(home, monkeypatch):
    from memctl.agents.clients import CLIENTS, Run

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "c"))
    monkeypatch.setenv("CODEX_HOME", str(home / "x"))
    found = [target.path for name in ("claude-code", "codex") for target in CLIENTS[name].targets(Run(["m"]))]
    assert found == [
        home / "c/.claude.json", home / "c/settings.json", home / "x/config.toml", home / "x/hooks.json",
    ]  # fmt: skip


@pytest.fixture
def pointing(home):
    """Two clients that have this memctl, one that has another, and Neovim's link; what was there before."""
    write(home, "cursor")
    write(home, "codex")
    other = home / ".gemini/settings.json"
    other.parent.mkdir()
    other.write_text('{"mcpServers": {"memd": {"command": "/elsewhere/memctl", "args": ["mcp"]}}}')
    packages = home / ".local/share/nvim/site/pack"
    for link, folder in (("memd/start/memd", PLUGINS / "nvim"), ("other/start/other", home)):
        (packages / link).parent.mkdir(parents=True)
        (packages / link).symlink_to(folder)
    (home / "run").mkdir(mode=0o700)
    before = tree(home)
    for client in ("cursor", "codex"):
        assert agents(home, "install", client, "--yes").returncode == 0
    return before


def test_uninstall_takes_away_what_points_to_it(home, pointing):
    done = memctl(home, "uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    for words in ("Cursor still runs this memctl: ", "Codex still runs", "hooks.json", "Neovim still loads"):
        assert words in done.stdout
    assert "Gemini" not in done.stdout
    assert {name: kept for name, kept in tree(home).items() if not name.startswith("state")} == pointing
    assert [path.name for path in home.glob(".local/share/nvim/site/pack/*/start/*")] == ["other"]


def test_uninstall_names_what_it_could_not_take_away(home, pointing):
    commented, locked = home / ".cursor/mcp.json", home / ".codex/hooks.json"
    commented.write_text(f"// mine\n{commented.read_text()}")
    locked.chmod(0o400)
    done = memctl(home, "uninstall", "--yes")
    assert done.returncode == exits.BY_HAND
    for path in (commented, locked):
        assert f"{path} still runs this memctl: remove it from there by hand" in done.stderr
        assert "memctl" in path.read_text()
    assert "read-only" in done.stdout
    assert "done; to remove the program" in done.stdout


def test_uninstall_goes_on_where_neovims_link_stays(home, pointing, monkeypatch, capsys):
    """As on a read-only file system."""
    [link] = home.glob(".local/share/nvim/site/pack/memd/start/memd")
    done = Path.unlink

    def unlink(path, **more):
        if path == link:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        done(path, **more)

    monkeypatch.setattr(Path, "unlink", unlink)
    for name, folder in ENVIRONMENT.items():
        monkeypatch.setenv(name, str(home / folder))
    assert main(["uninstall", "--yes"]) == exits.BY_HAND
    out, err = capsys.readouterr()
    assert f"{link} cannot be deleted: Read-only file system" in err
    assert "done; to remove the program" in out


def test_uninstall_does_not_wait_for_a_pipe_in_the_place_of_a_file(home, pointing):
    path = home / ".cursor/mcp.json"
    path.unlink()
    os.mkfifo(path)
    done = memctl(home, "uninstall", "--yes")
    assert (done.returncode, f"{path} is not changed: it is not a regular file" in done.stderr) == (11, True)
    assert f"{path.with_name('hooks.json')} still runs this memctl" in done.stderr


def test_uninstall_asks_before_it_takes_away_what_points_to_it(home, pointing):
    ours, theirs = os.openpty()
    os.write(ours, b"y\nn\n")
    done = memctl(home, "uninstall", stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert "Remove that, too? [y/N]" in done.stderr
    assert "memctl agents uninstall codex" in done.stdout
    assert states_of(home)["cursor"] == "installed"
    assert (home / ".local/share/nvim/site/pack/memd/start/memd").is_symlink()
    assert "done; to remove the program" in done.stdout
    assert set(pointing) <= set(tree(home))

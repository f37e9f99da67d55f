"""The table of agents' clients: their configuration files, and the edits that register memctl.

Clients start memctl by its full path, because few of them have the user's PATH.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from memctl import launch, paths
from memctl.agents.edits import Target, WholeFile
from memctl.agents.hooks import EVENTS, TOOL
from memctl.agents.json_file import Edit, Element, Entry, JsonFile
from memctl.agents.toml_file import TomlFile

NAME = "memd"  # of the MCP server in every client
# Variables that set the daemon's paths: Codex passes only listed variables to its servers.
ENVIRONMENT = (
    *("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"),
    *("TMPDIR", "MEMD_SOCKET", "MEMD_WORKSPACE"),
)
PLUGIN = str(files("memctl.agents") / "claude-code")  # the same hooks and server, for Claude Code's /plugin
HOOK_TIMEOUT_S = 5  # then the client continues without the hook, whose own deadline is far shorter


@dataclass(frozen=True, slots=True)
class Run:
    """How a client runs memctl, as its files name it."""

    memctl: Sequence[str]  # the command
    options: Sequence[str] = ()  # behind `memctl mcp` and `memctl hook …`
    is_warm: bool = False  # the hook at a prompt asks the server: no program is started for it

    def server(self, **more: Any) -> dict[str, Any]:
        """Return the server, with *more* keys before its command."""
        return {**more, "command": self.memctl[0], "args": [*self.memctl[1:], "mcp", *self.options]}

    def hook_lines(self, client: str) -> dict[str, str]:
        """Return event → the command that a client runs at it, for a shell."""
        return {
            event: shlex.join([*self.memctl, "hook", client, event, *self.options])
            for event in EVENTS[client]
        }

    def hooks(
        self, client: str, *, timeout: int = HOOK_TIMEOUT_S, is_grouped: bool = True
    ) -> tuple[Edit, ...]:
        """Return the edits that add the hooks of a client."""
        added: list[Edit] = []
        for event, line in self.hook_lines(client).items():
            hook: dict[str, Any] = {"type": "command", "command": line, "timeout": timeout}
            if self.is_warm and EVENTS[client][event] == "prompt":
                fields = {name: f"${{{name}}}" for name in ("prompt", "cwd", "session_id", "agent_id")}
                hook = {"type": "mcp_tool", "server": NAME, "tool": TOOL, "input": fields, "timeout": timeout}
            added.append(Element(("hooks", event), {"hooks": [hook]} if is_grouped else hook))
        # Without groups, the file has a version, which only a file without one gets.
        version = Entry(("version",), 1, lambda _: False, if_missing=True)
        return tuple(added if is_grouped else [version, *added])


@dataclass(frozen=True, slots=True)
class AgentClient:
    """One client, and what registers memctl with it."""

    name: str
    title: str
    targets: Callable[[Run], list[Target]]
    what: str  # is registered: tools, hooks or both
    next_step: str = ""  # to be done by the user
    # Returns the user's file of instructions for the model, None if the client has none.
    instructions: Callable[[], Path | None] = lambda: None
    can_be_warm: bool = False
    project_instructions: str = "AGENTS.md"  # the same of a project, relative to its root; "": none


def command() -> list[str]:
    """Return the command that starts memctl of this installation."""
    beside = Path(sys.executable).with_name("memctl")
    return [str(beside)] if beside.is_file() else launch.python_module("memctl")


def _home(variable: str, folder: str) -> Path:
    """Return the absolute path that a variable names, or else *folder*, which counts from the home folder."""
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else Path.home() / folder


def _config(name: str) -> Path:
    """Return the folder in which programs keep their configuration on this system."""
    is_mac = sys.platform == "darwin"
    return (Path.home() / "Library/Application Support" if is_mac else paths.config_dir().parent) / name


def _server_in(path: Path, server: dict[str, Any], key: str = "mcpServers") -> JsonFile:
    return JsonFile(path, (Entry((key, NAME), server),))


def _claude_folder() -> Path:
    return _home("CLAUDE_CONFIG_DIR", ".claude")


def _claude_code(run: Run) -> list[Target]:
    state = _claude_folder() if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()
    settings = JsonFile(_claude_folder() / "settings.json", run.hooks("claude-code"))
    return [_server_in(state / ".claude.json", run.server(type="stdio")), settings]


def _codex(run: Run) -> list[Target]:
    folder, server = _home("CODEX_HOME", ".codex"), run.server() | {"env_vars": list(ENVIRONMENT)}
    return [
        TomlFile(folder / "config.toml", ("mcp_servers", NAME), server),
        JsonFile(folder / "hooks.json", run.hooks("codex")),
    ]


def _copilot_folder() -> Path:
    return _home("COPILOT_HOME", ".copilot")


def _copilot_hook(run: Run) -> Target:
    """Return the file of hooks that Copilot CLI and VS Code read, both."""
    return JsonFile(_copilot_folder() / "hooks/memd.json", run.hooks("copilot", is_grouped=False))


def _opencode(run: Run) -> list[Target]:
    folder = _opencode_folder()
    named = [folder / name for name in ("opencode.jsonc", "opencode.json")]
    config = next((path for path in named if os.path.lexists(path)), named[-1])
    server = {"type": "local", "command": [*run.memctl, "mcp", *run.options], "enabled": True}
    plugin = (files("memctl.agents") / "opencode.js").read_text(encoding="utf-8")
    lines = json.dumps(run.hook_lines("opencode"), ensure_ascii=False)
    return [
        _server_in(config, server, "mcp"),
        WholeFile(folder / "plugins" / "memd.js", plugin.replace("__HOOKS__", lines)),
    ]


def _opencode_folder() -> Path:
    if os.environ.get("OPENCODE_CONFIG_DIR"):
        return _home("OPENCODE_CONFIG_DIR", "")
    return paths.config_dir().parent / "opencode"


def _openclaw(run: Run) -> list[Target]:
    state = _home("OPENCLAW_STATE_DIR", ".openclaw")
    config = _home("OPENCLAW_CONFIG_PATH", f"{state}/openclaw.json")
    plugin = str(files("memctl.agents") / "openclaw")
    settings = {"memctl": list(run.memctl)} | ({"workspace": run.options[1]} if run.options else {})
    edits = (
        Element(
            ("plugins", "load", "paths"), plugin,
            lambda value: isinstance(value, str) and value.rstrip("/").endswith("memctl/agents/openclaw"),
        ),
        Element(("plugins", "allow"), NAME, _is_name, if_there=True),
        Entry(
            ("plugins", "entries", NAME), {"enabled": True, "config": settings},
            lambda value: isinstance(value, dict) and "memctl" in (value.get("config") or ()),
        ),
        Entry(("plugins", "slots", "memory"), NAME, _is_name, replaces=True),
    )  # fmt: skip
    return [JsonFile(config, edits)]


def _is_name(value: Any) -> bool:
    return bool(value == NAME)


BOTH = "tools and hooks"
START = "tools, and a hook at the start of a conversation"
TOOLS = "tools"
CLIENTS = {
    client.name: client
    for client in (
        AgentClient(
            "claude-code", "Claude Code", _claude_code, BOTH,
            instructions=lambda: _claude_folder() / "CLAUDE.md",
            can_be_warm=True, project_instructions="CLAUDE.md",
        ),
        AgentClient(
            "codex", "Codex", _codex, BOTH, "codex asks you at its next start to trust the new hooks",
            lambda: _home("CODEX_HOME", ".codex") / "AGENTS.md",
        ),
        AgentClient(
            "cursor", "Cursor",
            lambda run: [
                _server_in(Path.home() / ".cursor/mcp.json", run.server()),
                JsonFile(Path.home() / ".cursor/hooks.json", run.hooks("cursor", is_grouped=False)),
            ],
            BOTH,
        ),
        AgentClient(
            "vscode", "VS Code",
            lambda run: [
                _server_in(_config("Code") / "User/mcp.json", run.server(type="stdio"), "servers"),
                _copilot_hook(run),
            ],
            START,
        ),
        AgentClient(
            "copilot", "Copilot CLI",
            lambda run: [
                _server_in(
                    _copilot_folder() / "mcp-config.json", run.server(type="local") | {"tools": ["*"]}
                ),
                _copilot_hook(run),
            ],
            START, instructions=lambda: _copilot_folder() / "copilot-instructions.md",
        ),
        AgentClient(
            "zed", "Zed",
            lambda run: [
                _server_in(
                    paths.config_dir().parent / "zed/settings.json",
                    run.server(source="custom", env={}),  # some versions require "source"
                    "context_servers",
                )
            ],
            TOOLS,
        ),
        AgentClient(
            "claude-desktop", "Claude Desktop",
            lambda run: [_server_in(_config("Claude") / "claude_desktop_config.json", run.server())], TOOLS,
            "quit Claude Desktop and start it again: it reads its configuration only then",
            project_instructions="",
        ),
        AgentClient(
            "windsurf", "Windsurf",
            lambda run: [_server_in(Path.home() / ".codeium/windsurf/mcp_config.json", run.server())], TOOLS,
            instructions=lambda: Path.home() / ".codeium/windsurf/memories/global_rules.md",
        ),
        AgentClient(
            "cline", "Cline",
            lambda run: [
                _server_in(
                    _home("CLINE_MCP_SETTINGS_PATH", ".cline/data/settings/cline_mcp_settings.json"),
                    run.server(),
                )
            ],
            TOOLS,
        ),
        AgentClient(
            "antigravity", "Antigravity CLI",
            lambda run: [_server_in(Path.home() / ".gemini/config/mcp_config.json", run.server())], TOOLS,
            instructions=lambda: Path.home() / ".gemini" / "GEMINI.md",
        ),
        AgentClient("opencode", "OpenCode", _opencode, BOTH, "", lambda: _opencode_folder() / "AGENTS.md"),
        AgentClient(
            "gemini", "Gemini CLI",
            lambda run: [
                JsonFile(
                    Path.home() / ".gemini/settings.json",
                    (
                        Entry(("mcpServers", NAME), run.server()),
                        *run.hooks("gemini", timeout=HOOK_TIMEOUT_S * 1000),  # in milliseconds there
                    ),
                )
            ],
            BOTH, "", lambda: Path.home() / ".gemini" / "GEMINI.md", project_instructions="GEMINI.md",
        ),
        AgentClient(
            "openclaw", "OpenClaw", _openclaw, "the plugin of its memory slot", project_instructions=""
        ),
    )
}  # fmt: skip

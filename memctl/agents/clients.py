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
from memctl.agents.hooks import EVENTS
from memctl.agents.json_file import Element, Entry, JsonFile
from memctl.agents.toml_file import TomlFile

NAME = "memd"  # of the MCP server in every client
# Variables that set the daemon's paths: Codex passes only listed variables to its servers.
ENVIRONMENT = (
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "TMPDIR",
    "MEMD_SOCKET",
    "MEMD_WORKSPACE",
)
HOOK_TIMEOUT_S = 5  # then the client continues without the hook, whose own deadline is far shorter


@dataclass(frozen=True, slots=True)
class AgentClient:
    """One client; *targets* gets the command of memctl and the options after `memctl mcp`."""

    name: str
    title: str
    targets: Callable[[Sequence[str], Sequence[str]], list[Target]]
    what: str  # is registered: tools, hooks or both
    next_step: str = ""  # to be done by the user
    # Returns the user's file of instructions for the model, None if the client has none.
    instructions: Callable[[], Path | None] = lambda: None
    project_instructions: str = "AGENTS.md"  # the same of a project, relative to its root


def command() -> list[str]:
    """Return the command that starts memctl of this installation."""
    beside = Path(sys.executable).with_name("memctl")
    return [str(beside)] if beside.is_file() else launch.python_module("memctl")


def _home(variable: str, folder: str) -> Path:
    named = os.environ.get(variable, "")
    return Path(named) if named.startswith("/") else Path.home() / folder


def _server(memctl: Sequence[str], options: Sequence[str], **more: Any) -> dict[str, Any]:
    return {**more, "command": memctl[0], "args": [*memctl[1:], "mcp", *options]}


def _hook_lines(client: str, memctl: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Return event → the command that a client runs at it, for a shell."""
    return {event: shlex.join([*memctl, "hook", client, event, *options]) for event in EVENTS[client]}


def _hooks(
    client: str, memctl: Sequence[str], options: Sequence[str], *, timeout: int = HOOK_TIMEOUT_S
) -> tuple[Element, ...]:
    def group(line: str) -> dict[str, Any]:
        return {"hooks": [{"type": "command", "command": line, "timeout": timeout}]}

    lines = _hook_lines(client, memctl, options)
    return tuple(Element(("hooks", event), group(line)) for event, line in lines.items())


def _claude_code(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    folder = _home("CLAUDE_CONFIG_DIR", ".claude")
    state = folder if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()
    server = Entry(("mcpServers", NAME), _server(memctl, options, type="stdio"))
    hooks = _hooks("claude-code", memctl, options)
    return [JsonFile(state / ".claude.json", (server,)), JsonFile(folder / "settings.json", hooks)]


def _codex(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    folder = _home("CODEX_HOME", ".codex")
    hooks = _hooks("codex", memctl, options)
    server = _server(memctl, options) | {"env_vars": list(ENVIRONMENT)}
    return [
        TomlFile(folder / "config.toml", ("mcp_servers", NAME), server),
        JsonFile(folder / "hooks.json", hooks),
    ]


def _cursor(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    server = Entry(("mcpServers", NAME), _server(memctl, options))
    return [JsonFile(Path.home() / ".cursor" / "mcp.json", (server,))]


def _vscode(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    is_mac = sys.platform == "darwin"
    config = Path.home() / "Library/Application Support" if is_mac else paths.config_dir().parent
    server = Entry(("servers", NAME), _server(memctl, options, type="stdio"))
    return [JsonFile(config / "Code" / "User" / "mcp.json", (server,))]


def _zed(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    # Some versions require "source"; later ones ignore it.
    server = Entry(("context_servers", NAME), _server(memctl, options, source="custom") | {"env": {}})
    return [JsonFile(paths.config_dir().parent / "zed" / "settings.json", (server,))]


def _opencode(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    folder = _opencode_folder()
    named = [folder / name for name in ("opencode.jsonc", "opencode.json")]
    config = next((path for path in named if os.path.lexists(path)), named[-1])
    server = {"type": "local", "command": [*memctl, "mcp", *options], "enabled": True}
    plugin = (files("memctl.agents") / "opencode.js").read_text(encoding="utf-8")
    lines = json.dumps(_hook_lines("opencode", memctl, options), ensure_ascii=False)
    return [
        JsonFile(config, (Entry(("mcp", NAME), server),)),
        WholeFile(folder / "plugins" / "memd.js", plugin.replace("__HOOKS__", lines)),
    ]


def _opencode_folder() -> Path:
    if os.environ.get("OPENCODE_CONFIG_DIR"):
        return _home("OPENCODE_CONFIG_DIR", "")
    return paths.config_dir().parent / "opencode"


def _gemini(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    server = Entry(("mcpServers", NAME), _server(memctl, options))
    hooks = _hooks("gemini", memctl, options, timeout=HOOK_TIMEOUT_S * 1000)  # in milliseconds there
    return [JsonFile(Path.home() / ".gemini" / "settings.json", (server, *hooks))]


def _openclaw(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    named = os.environ.get("OPENCLAW_CONFIG_PATH", "")
    config = (
        Path(named) if named.startswith("/") else _home("OPENCLAW_STATE_DIR", ".openclaw") / "openclaw.json"
    )
    plugin = str(files("memctl.agents") / "openclaw")
    settings = {"memctl": list(memctl)} | ({"workspace": options[1]} if options else {})
    edits = (
        Element(("plugins", "load", "paths"), plugin, _is_plugin),
        Element(("plugins", "allow"), NAME, _is_name, if_there=True),
        Entry(("plugins", "entries", NAME), {"enabled": True, "config": settings}, _is_plugin_entry),
        Entry(("plugins", "slots", "memory"), NAME, _is_name, replaces=True),
    )
    return [JsonFile(config, edits)]


def _is_plugin(value: Any) -> bool:
    return isinstance(value, str) and value.rstrip("/").endswith("memctl/agents/openclaw")


def _is_name(value: Any) -> bool:
    return bool(value == NAME)


def _is_plugin_entry(value: Any) -> bool:
    return isinstance(value, dict) and "memctl" in (value.get("config") or ())


BOTH = "tools and hooks"
TOOLS = "tools"
CLIENTS = {
    client.name: client
    for client in (
        AgentClient(
            "claude-code",
            "Claude Code",
            _claude_code,
            BOTH,
            "",
            lambda: _home("CLAUDE_CONFIG_DIR", ".claude") / "CLAUDE.md",
            "CLAUDE.md",
        ),
        AgentClient(
            "codex",
            "Codex",
            _codex,
            BOTH,
            "codex asks you at its next start to trust the new hooks",
            lambda: _home("CODEX_HOME", ".codex") / "AGENTS.md",
        ),
        AgentClient("cursor", "Cursor", _cursor, TOOLS),
        AgentClient("vscode", "VS Code", _vscode, TOOLS),
        AgentClient("zed", "Zed", _zed, TOOLS),
        AgentClient("opencode", "OpenCode", _opencode, BOTH, "", lambda: _opencode_folder() / "AGENTS.md"),
        AgentClient(
            "gemini",
            "Gemini CLI",
            _gemini,
            BOTH,
            "",
            lambda: Path.home() / ".gemini" / "GEMINI.md",
            "GEMINI.md",
        ),
        AgentClient("openclaw", "OpenClaw", _openclaw, "the plugin of its memory slot"),
    )
}

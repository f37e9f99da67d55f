"""The table of agents' clients: their configuration files, and the edits that register memctl.

Clients start memctl by its full path, because few of them have the user's PATH.
"""

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
class AgentClient:
    """One client; *targets* gets the command of memctl and the options after `memctl mcp`."""

    name: str
    title: str
    targets: Callable[[Sequence[str], Sequence[str]], list[Target]]
    what: str  # is registered: tools, hooks or both
    next_step: str = ""  # to be done by the user
    # Returns the user's file of instructions for the model, None if the client has none.
    instructions: Callable[[], Path | None] = lambda: None
    # Returns the same targets, whose hook at a prompt asks the server: no program is started for it.
    warm: Callable[[Sequence[str], Sequence[str]], list[Target]] | None = None
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


def _server(memctl: Sequence[str], options: Sequence[str], **more: Any) -> dict[str, Any]:
    return {**more, "command": memctl[0], "args": [*memctl[1:], "mcp", *options]}


def _hook_lines(client: str, memctl: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Return event → the command that a client runs at it, for a shell."""
    return {event: shlex.join([*memctl, "hook", client, event, *options]) for event in EVENTS[client]}


def _hooks(
    client: str,
    memctl: Sequence[str],
    options: Sequence[str],
    *,
    timeout: int = HOOK_TIMEOUT_S,
    is_grouped: bool = True,
) -> tuple[Edit, ...]:
    def element(line: str) -> dict[str, Any]:
        hook = {"type": "command", "command": line, "timeout": timeout}
        return {"hooks": [hook]} if is_grouped else hook

    lines = _hook_lines(client, memctl, options)
    added = tuple(Element(("hooks", event), element(line)) for event, line in lines.items())
    # Without groups, the file has a version, which only a file without one gets.
    return added if is_grouped else (Entry(("version",), 1, lambda _: False, if_missing=True), *added)


def _only_server(
    path: Callable[[], Path], key: str = "mcpServers", **more: Any
) -> Callable[[Sequence[str], Sequence[str]], list[Target]]:
    """Return the targets of a client that gets nothing but the server."""

    def targets(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
        return [JsonFile(path(), (Entry((key, NAME), _server(memctl, options, **more)),))]

    return targets


def _claude_code(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    folder = _home("CLAUDE_CONFIG_DIR", ".claude")
    state = folder if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()
    server = Entry(("mcpServers", NAME), _server(memctl, options, type="stdio"))
    hooks = _hooks("claude-code", memctl, options)
    return [JsonFile(state / ".claude.json", (server,)), JsonFile(folder / "settings.json", hooks)]


def _warm_claude_code(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    server, settings = _claude_code(memctl, options)
    fields = ("prompt", "cwd", "session_id", "agent_id")
    asked = {
        "type": "mcp_tool",
        "server": NAME,
        "tool": TOOL,
        "input": {name: f"${{{name}}}" for name in fields},
        "timeout": HOOK_TIMEOUT_S,
    }
    hooks = tuple(
        replace(edit, value={"hooks": [asked]}) if edit.path[-1] == "UserPromptSubmit" else edit
        for edit in _hooks("claude-code", memctl, options)
    )
    return [server, JsonFile(settings.path, hooks)]


def _codex(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    folder = _home("CODEX_HOME", ".codex")
    hooks = _hooks("codex", memctl, options)
    server = _server(memctl, options) | {"env_vars": list(ENVIRONMENT)}
    return [
        TomlFile(folder / "config.toml", ("mcp_servers", NAME), server),
        JsonFile(folder / "hooks.json", hooks),
    ]


def _cursor(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    folder = Path.home() / ".cursor"
    server = Entry(("mcpServers", NAME), _server(memctl, options))
    hooks = _hooks("cursor", memctl, options, is_grouped=False)
    return [JsonFile(folder / "mcp.json", (server,)), JsonFile(folder / "hooks.json", hooks)]


def _vscode(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    server = Entry(("servers", NAME), _server(memctl, options, type="stdio"))
    return [JsonFile(_config("Code") / "User" / "mcp.json", (server,)), _copilot_hook(memctl, options)]


def _copilot(memctl: Sequence[str], options: Sequence[str]) -> list[Target]:
    server = Entry(("mcpServers", NAME), _server(memctl, options, type="local") | {"tools": ["*"]})
    return [JsonFile(_copilot_folder() / "mcp-config.json", (server,)), _copilot_hook(memctl, options)]


def _copilot_folder() -> Path:
    return _home("COPILOT_HOME", ".copilot")


def _copilot_hook(memctl: Sequence[str], options: Sequence[str]) -> Target:
    """Return the file of hooks that Copilot CLI and VS Code read, both."""
    return JsonFile(
        _copilot_folder() / "hooks" / "memd.json", _hooks("copilot", memctl, options, is_grouped=False)
    )


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
    state = _home("OPENCLAW_STATE_DIR", ".openclaw")
    config = _home("OPENCLAW_CONFIG_PATH", f"{state}/openclaw.json")
    plugin = str(files("memctl.agents") / "openclaw")
    settings = {"memctl": list(memctl)} | ({"workspace": options[1]} if options else {})
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


_CLINE = ".cline/data/settings"
BOTH = "tools and hooks"
START = "tools, and a hook at the start of a conversation"
TOOLS = "tools"
CLIENTS = {
    client.name: client
    for client in (
        AgentClient(
            "claude-code", "Claude Code", _claude_code, BOTH, "",
            lambda: _home("CLAUDE_CONFIG_DIR", ".claude") / "CLAUDE.md", _warm_claude_code, "CLAUDE.md",
        ),
        AgentClient(
            "codex", "Codex", _codex, BOTH, "codex asks you at its next start to trust the new hooks",
            lambda: _home("CODEX_HOME", ".codex") / "AGENTS.md",
        ),
        AgentClient("cursor", "Cursor", _cursor, BOTH),
        AgentClient("vscode", "VS Code", _vscode, START),
        AgentClient(
            "copilot", "Copilot CLI", _copilot, START,
            instructions=lambda: _copilot_folder() / "copilot-instructions.md",
        ),
        AgentClient(
            "zed", "Zed",
            # Some versions require "source"; later ones ignore it.
            _only_server(
                lambda: paths.config_dir().parent / "zed" / "settings.json",
                "context_servers", source="custom", env={},
            ),
            TOOLS,
        ),
        AgentClient(
            "claude-desktop", "Claude Desktop",
            _only_server(lambda: _config("Claude") / "claude_desktop_config.json"), TOOLS,
            "quit Claude Desktop and start it again: it reads its configuration only then",
            project_instructions="",
        ),
        AgentClient(
            "windsurf", "Windsurf",
            _only_server(lambda: Path.home() / ".codeium/windsurf/mcp_config.json"), TOOLS,
            instructions=lambda: Path.home() / ".codeium/windsurf/memories/global_rules.md",
        ),
        AgentClient(
            "cline", "Cline",
            _only_server(lambda: _home("CLINE_MCP_SETTINGS_PATH", f"{_CLINE}/cline_mcp_settings.json")),
            TOOLS,
        ),
        AgentClient(
            "antigravity", "Antigravity CLI",
            _only_server(lambda: Path.home() / ".gemini/config/mcp_config.json"), TOOLS,
            instructions=lambda: Path.home() / ".gemini" / "GEMINI.md",
        ),
        AgentClient("opencode", "OpenCode", _opencode, BOTH, "", lambda: _opencode_folder() / "AGENTS.md"),
        AgentClient(
            "gemini", "Gemini CLI", _gemini, BOTH, "", lambda: Path.home() / ".gemini" / "GEMINI.md",
            project_instructions="GEMINI.md",
        ),
        AgentClient(
            "openclaw", "OpenClaw", _openclaw, "the plugin of its memory slot", project_instructions=""
        ),
    )
}  # fmt: skip

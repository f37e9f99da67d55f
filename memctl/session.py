"""The conversation of an agent that memctl runs in, as its client names it.

An entry is written with this id, so that an archived page of the conversation leads to the entry.
"""

import os
from typing import Any

# Set by Claude Code for its tools and MCP servers, and by Codex for its tools.
VARIABLES = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID")
MAX_CHARS = 200  # of an id; a longer one is something else
CODEX_META_KEY = "x-codex-turn-metadata"  # Codex: an object
META_KEYS = ("sessionID", "vscode.conversationId")  # OpenCode, VS Code: the id


def around() -> str:
    """Return the id of the conversation around this process; "" if no client names one."""
    return next((one for name in VARIABLES if (one := _usable(os.environ.get(name)))), "")


def of_call(meta: Any) -> str:
    """Return the id that a client sends with a tool call (`_meta`), or else the one around this process."""
    if not isinstance(meta, dict):
        return around()
    turn = meta.get(CODEX_META_KEY)
    named = [turn.get("session_id") if isinstance(turn, dict) else None, *map(meta.get, META_KEYS)]
    return next((one for given in named if (one := _usable(given))), "") or around()


def named(session: str) -> dict[str, str]:
    """Return the part of an author (`source`) that names a conversation; nothing for ""."""
    return {"session": session} if session else {}


def _usable(given: Any) -> str:
    is_id = isinstance(given, str) and len(given) <= MAX_CHARS and given.isprintable()
    return given.strip() if is_id else ""

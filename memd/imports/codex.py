"""Reader of Codex's session files: ~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl, one record per line.

A record has a `type` and a `payload`: "session_meta" identifies the session, "response_item" is input or
output of the model. "event_msg" repeats them for the screen. In older files each line is an item without
a record, and the first line has the session's id. The first kind is one object in a rollout-*.json, with the
same as `session` and `items`. The program writes its own texts into messages of the user;
they begin with a known tag or heading. A session that was forked begins with the items of the other one: they
are left out while that one's file is there.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from memd.imports.conversation import (
    ASSISTANT,
    SESSION_ID,
    SUBAGENT,
    USER,
    Conversation,
    Turn,
    blocks,
    fields,
    is_session_id,
    items,
    joined,
    moment,
    session_id,
    text,
)
from memd.imports.jsonl import ClientFile, below, members, objects

_INJECTED = (
    "# AGENTS.md instructions", "<INSTRUCTIONS>", "<apps_instructions>", "<collaboration_mode>",
    "<environment_context>", "<hook_prompt", "<model_switch>", "<permissions instructions>", "<skill>",
    "<skills_instructions>", "<subagent_notification>", "<turn_aborted>", "<user_instructions>",
    "<user_shell_command>",
)  # fmt: skip
_NAMED = re.compile(SESSION_ID.pattern + "$")  # the end of a file's name
# Items of the model's output that are tool calls → the key of their arguments.
_CALLS = {
    "function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action",
    "web_search_call": "action", "tool_search_call": "arguments",
}  # fmt: skip
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
# Content types since 0.1xx: "user.text" was typed by a person, the others were added by the program.
_PERSONS = ("user.", "unknown")


def default_folders() -> list[Path]:
    """Return the folders in which the client keeps its sessions."""
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    return [home / "sessions", home / "archived_sessions"]


def files(path: Path) -> Iterator[Path]:
    """Yield the session files below a folder."""
    return (one for one in below(path, "rollout-*.json*") if one.suffix.lower() in (".json", ".jsonl"))


def conversations(source: ClientFile, *, subagents: bool = False) -> Iterator[Conversation]:
    """Yield the session of a file; its turns are read lazily."""
    session = Conversation(id="", turns=iter(()))
    session.turns = _turns(session, source, subagents=subagents)
    yield session


def _items(source: ClientFile) -> Iterator[dict[str, object]]:
    """Yield the records of a file of the first kind."""
    with source.opened() as stream:
        yield from (record for _, record in members(stream, str(source.path), source))


def _turns(session: Conversation, source: ClientFile, *, subagents: bool) -> Iterator[Turn]:
    """Yield the turns of a session; without *subagents*, a subagent's has none."""
    path = source.path
    records = _items if path.suffix.lower() == ".json" else objects
    found = _NAMED.search(path.stem)
    recorded, named = "", found[0] if found else path.stem
    copied: Iterator[tuple[str, str]] = iter(())
    for record in records(source):
        payload = fields(record.get("payload"))
        match record.get("type"):
            case "session_meta":
                if not subagents and payload.get("thread_source") == "subagent":
                    source.problem(SUBAGENT)
                    return
                if not recorded:
                    copied = iter(_said(path, text(payload.get("forked_from_id"))))
                recorded = recorded or text(payload.get("id"))
                session.project = session.project or text(payload.get("cwd"))
            case "turn_context":
                session.project = session.project or text(payload.get("cwd"))
            case "event_msg" if payload.get("type") == "thread_name_updated":
                session.title = text(payload.get("thread_name")) or session.title
            case None if "payload" not in record:
                recorded = recorded or text(record.get("id"))
                session.started = session.started or moment(record.get("timestamp"))
        for turn in _of_record(record):
            session.id = session.id or session_id(path, named, recorded)
            if (turn.speaker, turn.text) != next(copied, None):
                copied = iter(())
                yield turn


def _said(path: Path, origin: str) -> list[tuple[str, str]]:
    """Return speaker and text of each turn of the session that one at *path* was forked from."""
    name = f"rollout-*-{origin}.jsonl"
    with suppress(OSError, IndexError, StopIteration):
        if is_session_id(origin):
            found = next(chain(path.parent.glob(name), path.parents[3].glob(f"*/*/*/{name}")))
            records = objects(ClientFile(found, found.parent))
            return [(one.speaker, one.text) for record in records for one in _of_record(record)]
    return []


def _of_record(record: dict[str, object]) -> Iterator[Turn]:
    kind = record.get("type")
    if kind == "response_item" or (kind is not None and "payload" not in record):
        item = fields(record.get("payload", record))
        at = moment(record.get("timestamp"))
        kind = text(item.get("type"))
        if kind == "message" and item.get("role") == "user":
            yield from (Turn(USER, typed, at) for typed in _typed(item))
        elif kind == "message" and item.get("role") == "assistant":
            yield Turn(ASSISTANT, joined(item.get("content")), at)
        elif kind == "reasoning":
            yield Turn(ASSISTANT, joined(item.get("summary")), at, "thinking")
        elif kind in _CALLS:
            called = item.get(_CALLS[kind])
            shown = called if isinstance(called, str) else json.dumps(called, ensure_ascii=False)
            yield Turn(f"Tool {text(item.get('name')) or kind}", shown, at, "tool")
        elif kind in _OUTPUTS:
            output = item.get("output")
            yield Turn("Tool", text(fields(output).get("content")) or joined(output), at, "tool")


def _typed(item: dict[str, object]) -> Iterator[str]:
    """Yield the typed parts of a user's message."""
    content = blocks(item.get("content"))
    kinds = items(fields(item.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds"))
    if len(kinds) != len(content):
        kinds = ["unknown"] * len(content)
    for block, kind in zip(content, kinds, strict=True):
        if block.get("type") == "input_image":
            yield "[image]"
            continue
        typed = text(block.get("text"))
        if text(kind).startswith(_PERSONS) and not typed.lstrip().startswith(_INJECTED):
            yield typed

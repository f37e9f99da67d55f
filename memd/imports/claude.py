"""Reader of the export of claude.ai: conversations.json in a zip, a list of conversations.

A message has a `sender`, "human" or "assistant", and a `content` of blocks; older exports have `text` alone.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from memd.imports import export
from memd.imports.conversation import (
    ASSISTANT,
    USER,
    Conversation,
    Problems,
    Turn,
    fields,
    items,
    joined,
    moment,
    text,
)
from memd.imports.jsonl import Read, members

_PATTERN = "conversations*.json"
NO_CONVERSATION = "conversation has no messages that are known: is it an export of Claude?"


def files(path: Path) -> Iterator[Path]:
    """Yield the exports below a folder, or the file itself."""
    return export.files(path, _PATTERN)


def conversations(
    path: Path, problems: Problems, read: Read, folder: Path | None = None
) -> Iterator[Conversation]:
    """Yield the conversations of an export."""
    for where, stream in export.streams(path, _PATTERN, problems, folder):
        for number, (_, found) in enumerate(members(stream, where, problems, read), 1):
            key = text(found.get("uuid"))
            if not key or "chat_messages" not in found:
                problems.add(where, NO_CONVERSATION, number)
                continue
            messages = map(fields, items(found["chat_messages"]))
            yield Conversation(
                id=key,
                is_export=True,
                turns=(turn for message in messages for turn in _of_message(message)),
                title=text(found.get("name")),
                started=moment(found.get("created_at")),
            )


def _of_message(message: dict[str, object]) -> Iterator[Turn]:
    at = moment(message.get("created_at"))
    speaker = {"human": USER, "assistant": ASSISTANT}.get(text(message.get("sender")))
    if speaker is None:
        return
    blocks = items(message.get("content")) or [{"type": "text", "text": message.get("text")}]
    for block in map(fields, blocks):
        yield from _of_block(block, speaker, at)
    for attached in map(fields, [*items(message.get("attachments")), *items(message.get("files"))]):
        name = text(attached.get("file_name")) or "text"
        yield Turn(speaker, f"[attached: {name}]", at)
        if extracted := text(attached.get("extracted_content")):
            yield Turn(f"Attached {name}", extracted, at, "tool")


def _of_block(block: dict[str, object], speaker: str, at: datetime | None) -> Iterator[Turn]:
    match block.get("type"):
        case "text":
            yield Turn(speaker, text(block.get("text")), at)
        case "thinking":
            yield Turn(speaker, text(block.get("thinking")), at, "thinking")
        case "tool_use":
            called = json.dumps(block.get("input"), ensure_ascii=False)
            yield Turn(f"Tool {text(block.get('name'))}", called, at, "tool")
        case "tool_result":
            yield Turn("Tool", joined(block.get("content")), at, "tool")

"""Reader of ChatGPT's export: conversations.json, in newer ones conversations-000.json and so on, in a zip.

A conversation is a tree of messages, `mapping`: each has a parent, and an answer that was asked for again has
a sibling. The branch that ends at `current_node` is what the person saw last, and it is what is kept.
"""

import re
from collections.abc import Iterator
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
    moment,
    text,
)
from memd.imports.jsonl import Read, members

_PATTERN = "conversations*.json"
NO_CONVERSATION = "conversation has no messages that are known: is it an export of ChatGPT?"
# References to what was found on the web, in characters that no font has.
_REFERENCE = re.compile("\ue200[^\ue200\ue201]{0,400}\ue201|[\ue200-\ue206]")
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})
_CONTEXT = frozenset({"user_editable_context", "model_editable_context"})  # what a person set up once


def files(path: Path) -> Iterator[Path]:
    """Yield the exports below a folder, or the file itself."""
    return export.files(path, _PATTERN)


def conversations(
    path: Path, problems: Problems, read: Read, folder: Path | None = None
) -> Iterator[Conversation]:
    """Yield the conversations of an export."""
    for where, stream in export.streams(path, _PATTERN, problems, folder):
        for number, (_, found) in enumerate(members(stream, where, problems, read), 1):
            mapping = fields(found.get("mapping"))
            key = text(found.get("conversation_id")) or text(found.get("id"))
            if not mapping or not key:
                problems.add(where, NO_CONVERSATION, number)
                continue
            yield Conversation(
                id=key,
                is_export=True,
                turns=_turns(mapping, text(found.get("current_node"))),
                title=text(found.get("title")),
                started=moment(found.get("create_time")),
            )


def _turns(mapping: dict[str, object], current: str) -> Iterator[Turn]:
    for node in _branch(mapping, current):
        message = fields(node.get("message"))
        if message and not fields(message.get("metadata")).get("is_visually_hidden_from_conversation"):
            yield from _of_message(message)


def _branch(mapping: dict[str, object], current: str) -> list[dict[str, object]]:
    """Return the nodes from the root to the current one; to the last leaf where none is named."""
    parents = {text(fields(node).get("parent")) for node in mapping.values()}
    key = (
        current if current in mapping else next((one for one in reversed(mapping) if one not in parents), "")
    )
    branch: dict[str, dict[str, object]] = {}
    while key in mapping and key not in branch:
        branch[key] = fields(mapping[key])
        key = text(branch[key].get("parent"))
    return list(reversed(branch.values()))


def _of_message(message: dict[str, object]) -> Iterator[Turn]:
    author = fields(message.get("author"))
    content = fields(message.get("content"))
    kind = text(content.get("content_type"))
    at = moment(message.get("create_time"))
    said = _REFERENCE.sub("", "\n\n".join(filter(None, map(_part, items(content.get("parts"))))))
    match author.get("role"):
        case "user" if kind not in _CONTEXT:
            yield Turn(USER, said or text(content.get("text")), at)
        case "assistant" if kind in _THOUGHTS:
            yield Turn(ASSISTANT, _thought(content), at, "thinking")
        case "assistant" if kind == "code" or message.get("recipient", "all") != "all":
            yield Turn(
                f"Tool {text(message.get('recipient'))}", said or text(content.get("text")), at, "tool"
            )
        case "assistant":
            yield Turn(ASSISTANT, said or text(content.get("text")), at)
        case "tool":
            shown = said or text(content.get("text")) or text(content.get("result"))
            yield Turn(f"Tool {text(author.get('name'))}", shown, at, "tool")


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    kind = text(fields(part).get("content_type"))
    return text(fields(part).get("text")) or (f"[{kind.partition('_')[0]}]" if kind else "")


def _thought(content: dict[str, object]) -> str:
    thoughts = (text(fields(one).get("content")) for one in items(content.get("thoughts")))
    return "\n\n".join(filter(None, thoughts)) or text(content.get("content"))

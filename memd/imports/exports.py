"""Readers of exports: conversations of ChatGPT and of claude.ai, channels of Discord.

ChatGPT's export is a zip with conversations.json, in newer ones conversations-000.json and so on. A
conversation is a tree of messages, `mapping`: each message has a parent, and a regenerated answer is a
sibling of the first one. Only the branch that ends at `current_node`, the last one displayed, is imported.

Claude's has conversations.json in a zip, a list of conversations. A message has a `sender`, "human" or
"assistant", and a `content` of blocks; older exports have `text` alone.

DiscordChatExporter writes a JSON file for each channel or thread: an object with `guild`, `channel` and a
list of `messages`, oldest first; each message has an author, a `timestamp` and `content`. A channel has no
end, so each of its days, in the time zone of the export, is one conversation.
"""

import itertools
import re
from collections.abc import Iterator
from functools import partial

from memd.imports import export
from memd.imports.claude_code import api_turns
from memd.imports.conversation import (
    ASSISTANT,
    USER,
    Conversation,
    Problems,
    Turn,
    blocks,
    fields,
    identifier,
    items,
    moment,
    text,
)
from memd.imports.jsonl import ClientFile, members

Message = dict[str, object]
CONVERSATIONS = "conversations*.json"
NOT_CHATGPT = "conversation has no known messages: is it an export of ChatGPT?"
# References to web results, in private-use characters.
_REFERENCE = re.compile("\ue200[^\ue200\ue201]{0,400}\ue201|[\ue200-\ue206]")
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})
_CONTEXT = frozenset({"user_editable_context", "model_editable_context"})  # the user's standing settings
NOT_CLAUDE = "conversation has no known messages: is it an export of Claude?"

_CHANNELS = "*.json"
NO_CHANNEL = "has no channel before its messages: is it JSON of DiscordChatExporter?"
UNDATED = "message has no time"
# 20 and 23 are the answers of bots to commands. Other types come from the program: joins, pins, calls.
_SAID = frozenset({"Default", "Reply", "", "20", "23"})


conversation_files = partial(
    export.files, pattern=CONVERSATIONS, begin=re.compile(rb'"(?:mapping|chat_messages)"')
)


def chatgpt_conversations(source: ClientFile) -> Iterator[Conversation]:
    """Yield the conversations of an export."""
    for where, number, found in _conversations("mapping", source):
        mapping = fields(found.get("mapping"))
        its_id = identifier(found.get("conversation_id")) or identifier(found.get("id"))
        if not mapping or not its_id:
            source.problems.add(where, NOT_CHATGPT, number)
            continue
        yield Conversation(
            id=its_id,
            is_export=True,
            turns=_chatgpt_turns(mapping, identifier(found.get("current_node"))),
            title=text(found.get("title")),
            started=moment(found.get("create_time")),
        )


def _conversations(has: str, source: ClientFile) -> Iterator[tuple[str, int, Message]]:
    """Yield place, number and fields of those that have a key: in a list, alone, or one in a line."""
    for where, stream in export.streams(source, CONVERSATIONS):
        for number, (_, member) in enumerate(members(stream, where, source, whole=True), 1):
            listed = [] if has in member else [one for value in member.values() for one in items(value)]
            yield from ((where, number, one) for one in map(fields, listed or [member]))


def _chatgpt_turns(mapping: dict[str, object], current: str) -> Iterator[Turn]:
    # From the root to the current node, or to the last leaf if none is current.
    parents = {identifier(fields(node).get("parent")) for node in mapping.values()}
    at = current if current in mapping else next((one for one in reversed(mapping) if one not in parents), "")
    branch: dict[str, dict[str, object]] = {}
    while at in mapping and at not in branch:
        branch[at] = fields(mapping[at])
        at = identifier(branch[at].get("parent"))
    for node in reversed(branch.values()):
        message = fields(node.get("message"))
        if message and not fields(message.get("metadata")).get("is_visually_hidden_from_conversation"):
            yield from _of_chatgpt_message(message)


def _of_chatgpt_message(message: dict[str, object]) -> Iterator[Turn]:
    author = fields(message.get("author"))
    content = fields(message.get("content")) or {"text": message.get("content")}
    kind = text(content.get("content_type"))
    at = moment(message.get("create_time"))
    spoken = _REFERENCE.sub("", "\n\n".join(filter(None, map(_part, items(content.get("parts"))))))
    match author.get("role"):
        case "user" if kind not in _CONTEXT:
            yield Turn(USER, spoken or text(content.get("text")), at)
        case "assistant" if kind in _THOUGHTS:
            yield Turn(ASSISTANT, _thought(content), at, "thinking")
        case "assistant" if kind == "code" or message.get("recipient", "all") != "all":
            yield Turn(
                f"Tool {text(message.get('recipient'))}", spoken or text(content.get("text")), at, "tool"
            )
        case "assistant":
            yield Turn(ASSISTANT, spoken or text(content.get("text")), at)
        case "tool":
            shown = spoken or text(content.get("text")) or text(content.get("result"))
            yield Turn(f"Tool {text(author.get('name'))}", shown, at, "tool")


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    kind = text(fields(part).get("content_type"))
    kind = kind.removeprefix("real_time_user_").partition("_")[0]
    return text(fields(part).get("text")) or (f"[{kind}]" if kind else "")


def _thought(content: dict[str, object]) -> str:
    thoughts = (text(fields(one).get("content")) for one in items(content.get("thoughts")))
    return "\n\n".join(filter(None, thoughts)) or text(content.get("content"))


def claude_conversations(source: ClientFile) -> Iterator[Conversation]:
    """Yield the conversations of an export."""
    for where, number, found in _conversations("chat_messages", source):
        its_id = identifier(found.get("uuid"))
        if not its_id or "chat_messages" not in found:
            source.problems.add(where, NOT_CLAUDE, number)
            continue
        messages = map(fields, items(found["chat_messages"]))
        yield Conversation(
            id=its_id,
            is_export=True,
            turns=(turn for message in messages for turn in _of_claude_message(message)),
            title=text(found.get("name")),
            started=moment(found.get("created_at")),
        )


def _of_claude_message(message: dict[str, object]) -> Iterator[Turn]:
    at = moment(message.get("created_at"))
    speaker = {"human": USER, "assistant": ASSISTANT}.get(text(message.get("sender")))
    if speaker is None:
        return
    content = blocks(message.get("content"))
    if all(block.get("type") == "text" and not text(block.get("text")).strip() for block in content):
        content = blocks(message.get("text"))
    for block in content:
        yield from api_turns(block, speaker, at)
    for attached in map(fields, [*items(message.get("attachments")), *items(message.get("files"))]):
        name = text(attached.get("file_name")) or "text"
        yield Turn(speaker, f"[attached: {name}]", at)
        if extracted := text(attached.get("extracted_content")):
            yield Turn(f"Attached {name}", extracted, at, "tool")


discord_files = partial(export.files, pattern=_CHANNELS)


def discord_conversations(source: ClientFile) -> Iterator[Conversation]:
    """Yield one conversation per day of a channel."""
    for where, stream in export.streams(source, _CHANNELS):
        about: dict[str, Message] = {}
        found = _messages(members(stream, where, source), about, where, source.problems)
        for day, of_day in itertools.groupby(found, lambda message: text(message["timestamp"])[:10]):
            guild, channel = about.get("guild", {}), about["channel"]
            messages = iter(of_day)
            first = next(messages)
            yield Conversation(
                # The first message is part of the id: an export that begins in the middle of a day continues
                # no other one.
                id=f"{text(channel.get('id'))}/{day}/{text(first.get('id'))}",
                turns=map(_discord_turn, itertools.chain([first], messages)),
                title=_title(guild, channel),
                is_export=True,
                written_by="human",
            )


def _messages(
    found: Iterator[tuple[str, Message]], about: dict[str, Message], where: str, problems: Problems
) -> Iterator[Message]:
    """Yield the messages of people; guild and channel, which come first, are added to *about*."""
    for number, (key, member) in enumerate(found, 1):
        if key != "messages":
            about[key] = member
        elif not text(about.get("channel", {}).get("id")):
            problems.add(where, NO_CHANNEL)
            return
        elif text(member.get("type")) in _SAID:
            if moment(member.get("timestamp")) is None:
                problems.add(where, UNDATED, number)
            else:
                yield member
    if "channel" not in about:
        problems.add_if_none(where, NO_CHANNEL)


def _title(guild: Message, channel: Message) -> str:
    place = " / ".join(filter(None, [text(guild.get("name")), text(channel.get("category"))]))
    return f"{text(channel.get('name')) or 'channel'} in {place}" if place else text(channel.get("name"))


def _discord_turn(message: Message) -> Turn:
    author = fields(message.get("author"))
    attached = [
        f"[attached: {text(fields(one).get('fileName'))}]" for one in items(message.get("attachments"))
    ]
    embeds = [
        "\n".join(filter(None, (text(one.get(key)) for key in ("title", "description", "name", "value"))))
        for embed in map(fields, items(message.get("embeds")))
        for one in [embed, *map(fields, items(embed.get("fields")))]
    ]
    if forwarded := fields(message.get("forwardedMessage")):
        embeds.insert(0, _discord_turn(forwarded | {"forwardedMessage": None}).text)
    spoken = "\n\n".join(filter(None, [text(message.get("content")), *embeds, *attached]))
    name = text(author.get("nickname")) or text(author.get("name")) or "somebody"
    return Turn(name, spoken, moment(message.get("timestamp")))

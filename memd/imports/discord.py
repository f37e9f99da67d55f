"""Reader of Discord channels as DiscordChatExporter writes them: JSON, a file a channel or thread.

An object with `guild`, `channel` and a list of `messages`, oldest first; each has an author, a `timestamp`
and `content`. A channel has no end, so a conversation is a day of it, as the export's own zone has it.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

from memd.imports import export
from memd.imports.conversation import Conversation, Problems, Turn, fields, items, moment, text
from memd.imports.jsonl import Read, members

_PATTERN = "*.json"
NO_CHANNEL = "has no channel before its messages: is it JSON of DiscordChatExporter?"
UNDATED = "message has no time"
_SAID = frozenset({"Default", "Reply", ""})  # other types are the program's: somebody joined, pinned, called

Message = dict[str, object]


def files(path: Path) -> Iterator[Path]:
    """Yield the exports below a folder, or the file itself."""
    return export.files(path, _PATTERN)


def conversations(
    path: Path, problems: Problems, read: Read, folder: Path | None = None
) -> Iterator[Conversation]:
    """Yield a conversation for each day of a channel."""
    for where, stream in export.streams(path, _PATTERN, problems, folder):
        about: dict[str, Message] = {}
        found = _messages(members(stream, where, problems, read), about, where, problems)
        for day, of_day in itertools.groupby(found, lambda message: text(message["timestamp"])[:10]):
            guild, channel = about.get("guild", {}), about["channel"]
            messages = iter(of_day)
            first = next(messages)
            yield Conversation(
                # Its first message, too: an export may begin in the middle of a day, and is no other's heir.
                id=f"{text(channel.get('id'))}/{day}/{text(first.get('id'))}",
                turns=map(_turn, itertools.chain([first], messages)),
                title=_title(guild, channel),
                is_export=True,
                written_by="human",
            )


def _messages(
    found: Iterator[tuple[str, Message]], about: dict[str, Message], where: str, problems: Problems
) -> Iterator[Message]:
    """Yield the messages that people wrote; *about* gets guild and channel, which stand before them."""
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


def _turn(message: Message) -> Turn:
    author = fields(message.get("author"))
    attached = [
        f"[attached: {text(fields(one).get('fileName'))}]" for one in items(message.get("attachments"))
    ]
    embeds = [_embed(fields(one)) for one in items(message.get("embeds"))]
    said = "\n\n".join(filter(None, [text(message.get("content")), *embeds, *attached]))
    name = text(author.get("nickname")) or text(author.get("name")) or "somebody"
    return Turn(name, said, moment(message.get("timestamp")))


def _embed(embed: Message) -> str:
    return "\n".join(filter(None, [text(embed.get("title")), text(embed.get("description"))]))

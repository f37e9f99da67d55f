"""The clients whose conversations can be imported: where each keeps them, and who reads them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from memd.imports import chatgpt, claude, claude_code, codex, discord, memory_folder
from memd.imports.conversation import Conversation, Document, Problems
from memd.imports.jsonl import Read


class Reader(Protocol):
    """Yields what a file of a client holds."""

    def __call__(
        self, path: Path, problems: Problems, read: Read, folder: Path | None = None, /
    ) -> Iterator[Conversation | Document]:
        """Below *folder*, in which the file was found, no link is followed."""


@dataclass(frozen=True, slots=True)
class ClientReader:
    """One client."""

    files: Callable[[Path], Iterator[Path]]  # below what the user names
    read: Reader
    default_folders: Callable[[], list[Path]] | None = None  # None: the user names an export
    follow: bool = False  # its files grow while a conversation goes on


CLIENTS: Final[Mapping[str, ClientReader]] = {
    "claude-code": ClientReader(
        claude_code.files, claude_code.conversations, claude_code.default_folders, follow=True
    ),
    "codex": ClientReader(codex.files, codex.conversations, codex.default_folders, follow=True),
    "chatgpt": ClientReader(chatgpt.files, chatgpt.conversations),
    "claude": ClientReader(claude.files, claude.conversations),
    "discord": ClientReader(discord.files, discord.conversations),
    "openclaw": ClientReader(
        memory_folder.files, memory_folder.documents("openclaw"), memory_folder.openclaw_folders, follow=True
    ),
    "cowagent": ClientReader(
        memory_folder.files, memory_folder.documents("cowagent"), memory_folder.cowagent_folders, follow=True
    ),
}

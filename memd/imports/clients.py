"""The clients whose conversations can be imported: where each keeps them, and who reads them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memd.imports import claude_code, codex
from memd.imports.conversation import Conversation, Document, Problems
from memd.imports.jsonl import Read

Reader = Callable[[Path, Problems, Read], Iterator[Conversation | Document]]


@dataclass(frozen=True, slots=True)
class Client:
    """One client."""

    files: Callable[[Path], Iterator[Path]]  # below what the user names
    read: Reader
    default_folders: Callable[[], list[Path]] | None = None  # None: the user names an export
    follow: bool = False  # its files grow while a conversation goes on


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-code": Client(
        claude_code.files, claude_code.conversations, claude_code.default_folders, follow=True
    ),
    "codex": Client(codex.files, codex.conversations, codex.default_folders, follow=True),
}

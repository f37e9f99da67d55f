"""Reader of memory that programs keep in Markdown: of OpenClaw, CowAgent, basic-memory and Letta.

In both, MEMORY.md has the facts learned, memory/YYYY-MM-DD.md the events of a day (in OpenClaw also with a
name after the day), and folders below memory/ similar notes: CowAgent's dreams/, evolution/ and users/ID/.
OpenClaw has USER.md and DREAMS.md next to MEMORY.md. The rest of a workspace are instructions for the agent.
All notes of basic-memory's project folder are memory, and all of Letta's MemFS, a git repository for each
agent, except skills, which are instructions.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from memd.imports.conversation import ForeignNote, Problems
from memd.imports.jsonl import NOT_UTF8 as REPLACED
from memd.imports.jsonl import ClientFile, visible

MAX_BYTES = 2 * 1024 * 1024  # half of memd's limit for a note
TOO_LARGE = f"has more than {MAX_BYTES >> 20} MiB"
NOT_UTF8 = "is not UTF-8 text"

_TOP = frozenset({"memory.md", "user.md", "dreams.md"})  # in small letters
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?:$|[-_ .T])")
_NAMED = re.compile(
    r"\A---[ \t]*\r?\n(?:(?!---)[^\n]*\n)*?(?:title|name):[ \t]*(\S[^\r\n]*)"
)  # in front matter
_HEADING = re.compile(r"^# +(\S.*)$", re.MULTILINE)


# Client → the folders of its memory.
FACTS: Mapping[str, Callable[[], list[Path]]] = {
    "openclaw": lambda: [
        Path(os.environ.get("OPENCLAW_STATE_DIR") or Path.home() / ".openclaw") / "workspace"
    ],
    "cowagent": lambda: [Path.home() / "cow"],
}
# The same of clients whose notes have their title in the front matter; Letta has a folder for each agent.
NAMED: Mapping[str, Callable[[], list[Path]]] = {
    "basic-memory": lambda: [Path(os.environ.get("BASIC_MEMORY_HOME") or Path.home() / "basic-memory")],
    "letta": lambda: (
        sorted((all_of := Path.home() / ".letta/agents").glob("*/memory")) or [all_of / "*/memory"]
    ),
}


def every_file(path: Path) -> Iterator[Path]:
    """Yield all notes below a folder, without hidden folders and skills."""
    return (one for one in visible(path, "*.md") if one.relative_to(path).parts[0] != "skills")


def files(path: Path) -> Iterator[Path]:
    """Yield the memory files of a workspace."""
    memory = path if path.name == "memory" and not (path / "memory").is_dir() else path / "memory"
    yield from (one for one in sorted(memory.parent.iterdir()) if one.name.lower() in _TOP and one.is_file())
    if memory.is_symlink() and memory != path:
        yield memory  # a path that is refused by its name, without a scan
    else:
        yield from visible(memory, "*.md")


def documents(client: str) -> Callable[..., Iterator[ForeignNote]]:
    """Return the reader of a client's files."""
    return reader(lambda note, _: [note.document(client)])


@dataclass(frozen=True, slots=True)
class Note:
    """The text of a file, or of a section of it."""

    path: Path
    text: str
    changed: datetime
    section: str = ""  # after "#"

    def document(self, client: str, projects: tuple[str, ...] | None = None) -> ForeignNote:
        """Return the note as one of a client's, about *projects*."""
        is_named = bool(projects) or client in NAMED
        found = _HEADING.search(self.text) or (_NAMED.search(self.text) if is_named else None)
        title = found[1].strip("\"'") if found else f"{self.path.stem} of {client}"
        # The whole path, because files of two agents have the same names.
        where = f"{self.path.absolute()}{self.section}"
        return ForeignNote(where, title, self.text, _day(self.path.name), self.changed, projects)


def reader(
    documents_of: Callable[[Note, Problems], Iterable[ForeignNote]],
) -> Callable[..., Iterator[ForeignNote]]:
    """Return the reader of files of which each has these documents."""

    def read_documents(source: ClientFile) -> Iterator[ForeignNote]:
        if note := _note_in(source):
            yield from documents_of(note, source.problems)

    return read_documents


def _note_in(source: ClientFile) -> Note | None:
    """Return the text of a file; None if it has none, or none that memd could read.

    Raises:
        OSError: it is not a regular file below its folder, or cannot be read.
    """
    with source.opened() as stream:
        raw = stream.read(MAX_BYTES + 1)
        changed = datetime.fromtimestamp(os.fstat(stream.fileno()).st_mtime, UTC).astimezone()
    source.read(len(raw))
    if len(raw) > MAX_BYTES:
        source.problem(TOO_LARGE)
        return None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        is_text = b"\0" not in raw  # UTF-16 has some
        source.problem(REPLACED if is_text else NOT_UTF8, part=is_text)
        text = raw.decode("utf-8-sig", "replace") if is_text else ""
    return Note(source.path, text, changed) if text.strip() else None


def _day(name: str) -> date | None:
    found = _DAY.match(name)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None

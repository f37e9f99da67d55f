"""Reader of claude-mem's database, ~/.claude-mem/claude-mem.db: one note for each session.

A session has observations (title, subtitle, narrative, facts) and a summary (request, investigated, learned,
completed, next_steps). The names of tables and columns are those of its migrations up to 35; columns that an
older database lacks count as empty. The database is read as bytes into memory, because SQLite would write
beside it, which the sandbox forbids; what its write-ahead log holds is told, and comes with a later import.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from memd.imports.conversation import ForeignNote, items, moment, text
from memd.imports.jsonl import ClientFile

NAME = "claude-mem.db"
MAX_STORE_BYTES = 512 * 1024 * 1024  # arbitrary: years of observations have some MB
LARGE_STORE = f"has more than {MAX_STORE_BYTES >> 20} MiB"
NOT_STORE = "is not a database of claude-mem"
IN_LOG = "has changes in its write-ahead log (-wal), which come with an import after claude-mem has ended"
TIMELESS = "session without a time that can be read"
_JOURNAL = slice(18, 20)  # in the header: 2, 2 is a write-ahead log, which a database in memory cannot have
_SUMMARY = {
    "request": "Request", "investigated": "Investigated", "learned": "Learned", "completed": "Completed",
    "next_steps": "Next steps", "notes": "Notes",
}  # fmt: skip

Row = dict[str, object]


def folders() -> list[Path]:
    """Return the folder of its database."""
    return [Path(os.environ.get("CLAUDE_MEM_DATA_DIR") or Path.home() / ".claude-mem")]


def files(path: Path) -> Iterator[Path]:
    """Yield the database in a folder."""
    yield from (one for one in [path / NAME] if one.is_file())


def sessions(source: ClientFile) -> Iterator[ForeignNote]:
    """Yield a note for each session of a database."""
    path = source.path
    with source.opened() as stream:
        raw = bytearray(stream.read(MAX_STORE_BYTES + 1))
    source.read(len(raw))
    if len(raw) > MAX_STORE_BYTES:
        source.problem(LARGE_STORE)
        return
    with suppress(OSError):
        if path.with_name(f"{path.name}-wal").stat().st_size:
            source.problem(IN_LOG, part=True)
    raw[_JOURNAL] = b"\1\1"
    with closing(sqlite3.connect(":memory:")) as database:
        database.row_factory = sqlite3.Row
        try:
            database.deserialize(bytes(raw))
            observations = _rows(database, "observations")
            summaries = _rows(database, "session_summaries")
        except (sqlite3.Error, OverflowError):
            source.problem(NOT_STORE)
            return
    of_session: dict[str, tuple[list[Row], list[Row]]] = {}
    for kind, rows in enumerate((observations, summaries)):
        for row in rows:
            if isinstance(session := row.get("memory_session_id"), str):
                of_session.setdefault(session, ([], []))[kind].append(row)
    for session, (own, summary) in of_session.items():
        if note := _note(path, session, own, summary):
            yield note
        else:
            source.problem(TIMELESS, part=True)


def _rows(database: sqlite3.Connection, table: str) -> list[Row]:
    """Return the rows of a table. A view has none: it may compute without an end."""
    if not database.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (table,)
    ).fetchone():
        raise sqlite3.OperationalError(f"no table {table}")
    return [dict(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY created_at_epoch, id")]


def _note(path: Path, session: str, observations: list[Row], summaries: list[Row]) -> ForeignNote | None:
    times = [at for row in [*observations, *summaries] if (at := moment(row.get("created_at")))]
    if not times:
        return None
    parts = [part for row in observations for part in _observed(row)]
    for row in summaries:
        parts += [
            f"## {head}\n\n{said}" for key, head in _SUMMARY.items() if (said := text(row.get(key)).strip())
        ]
    titles = [text(row.get("request")) for row in summaries]
    titles += [text(row.get("title")) for row in observations]
    title = " ".join(next(filter(str.strip, titles), f"Session {session}").split())
    if project := next((one for row in [*observations, *summaries] if (one := text(row.get("project")))), ""):
        parts.insert(0, f"Project: {project}")
    where = f"{path.absolute()}#{session}"
    return ForeignNote(where, title, "\n\n".join(parts), min(times).date(), max(times))


def _observed(row: Row) -> Iterator[str]:
    if title := text(row.get("title")).strip():
        yield f"## {title}"
    for key in ("subtitle", "narrative", "text"):
        if said := text(row.get(key)).strip():
            yield said
    facts = text(row.get("facts"))
    with suppress(ValueError, RecursionError):
        if listed := [
            fact for fact in items(json.loads(facts or "[]")) if isinstance(fact, str) and fact.strip()
        ]:
            yield "\n".join(f"- {' '.join(fact.split())}" for fact in listed)

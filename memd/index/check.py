"""The check of an index: each invariant is derived again from its source and compared.

Reads only, by a connection of its own, so that it may run beside queries and saves; it sees one moment. What
it finds is mended by `memd.index.repair`, in the writing thread.

FTS5's own check is not enough. The tables do not hold the text (`content=''`), so it cannot compare with it;
and with or without its rank it says ok where the lengths that ranking divides by are gone. Queries rank by
memd's own count, so nothing else would notice.
"""

import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from memd.errors import DeadlineError, IndexDamagedError
from memd.fsio import Failure
from memd.index import chunk_text
from memd.index.column_table import StoredSlice, chunks_in
from memd.index.columns import HAS_NUMPY, only_living, take
from memd.index.database import open_scratch
from memd.index.derived_file import flaw
from memd.index.index import DATABASE, FILE_NAMES, Index
from memd.index.links import key_of, supersession
from memd.index.matrices import matrix_name
from memd.index.reader import Reader
from memd.index.signature import signature
from memd.index.snapshot import View
from memd.index.source_rows import is_beyond
from memd.index.vector_table import WITHOUT
from memd.index.vectors import Matrix
from memd.records import FileStamp, SourceText
from memd.sources.scan import Rules, read_source, walk
from memd.text import scripts_of

TABLES: Final = {"words": "temp.postings", "trigrams": "temp.trigram_postings"}
BATCH = 500  # chunks handed to FTS5 at once

# A term's postings as a few numbers; trigrams have no offsets. A place that is missing, that is too much or
# that was moved changes the first three; two errors would have to cancel out in all of them. 65,521 is the
# largest prime below 2**16: products stay far below 2**63.
SUMS = """
    SELECT term, count(*), sum(doc), sum(offset), sum((doc % 65521) * (ifnull(offset, doc) % 65521 + 1))
    FROM {places} GROUP BY term
"""

Texts = tuple[int, str, str]  # chunk, what the words table indexes, what the trigrams table does


class Rederived:
    """Full-text tables made from the chunks once more, in a database of their own."""

    def __init__(self) -> None:
        self._database = open_scratch()

    def fill(self, texts: Iterable[Texts]) -> None:
        """Index the texts of all chunks, in the order of their ids."""
        remaining = iter(texts)
        while batch := list(islice(remaining, BATCH)):
            with self._database:
                self._database.executemany(
                    "INSERT INTO words (rowid, text) VALUES (?, ?)", ((one[0], one[1]) for one in batch)
                )
                self._database.executemany(
                    "INSERT INTO trigrams (rowid, text) VALUES (?, ?)", ((one[0], one[2]) for one in batch)
                )

    def differing(self, reader: Reader, table: str) -> int:
        """Return how many terms of *table* have other postings than their texts say.

        Raises:
            IndexDamagedError: the table can't be read.
        """
        statement = SUMS.format(places=TABLES[table])
        return _differences(iter(self._database.execute(statement)), reader.each(statement))

    def close(self) -> None:
        """Delete it."""
        self._database.close()


def _differences(expected: Iterator[tuple[object, ...]], found: Iterator[tuple[object, ...]]) -> int:
    """Count the terms that two sorted lists do not have in common with the same numbers."""
    one, other = next(expected, None), next(found, None)
    count = 0
    while one is not None or other is not None:
        if one == other:
            one, other = next(expected, None), next(found, None)
            continue
        count += 1
        here = str(one[0]).encode() if one is not None else None
        there = str(other[0]).encode() if other is not None else None
        if there is None or (here is not None and here <= there):
            one = next(expected, None)
        if here is None or (there is not None and there <= here):
            other = next(found, None)
    return count


# Kind → what mends it. Those of MENDED are mended by `memd.index.repair`.
MENDED: Final[Mapping[str, str]] = {
    "words": "the table is filled again from the chunks",
    "trigrams": "the table is filled again from the chunks",
    "chunk": "its source is cut again",
    "rows": "they are embedded again",
    "postings": "the file is dropped, and made again when there is time",
    "codes": "the file is dropped, and made again when there is time",
    "waiting": "who waits for a vector, and who gets none, is found out anew",
    "stray": "it is removed",
    "sidecar": "it is removed, and written anew where it is needed",
    "columns": "they are made again from chunks and vectors",
    "published": "the database is read again",
    "unfinished": "it is removed",
    "stale": "it is read again",
    "unindexed": "it is read",
    "absent": "it is looked for",
}
NOT_MENDED: Final[Mapping[str, str]] = {
    "database": "the index is built anew: memctl index --rebuild",
    "foreign": "look whose it is: memd neither reads nor removes it",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    kind: str  # of MENDED or NOT_MENDED
    text: str  # one line: what, where
    names: tuple[str, ...] = ()  # of sources or files: what the repair needs
    matrix: int = 0
    rows: tuple[int, ...] = ()

    @property
    def repairable(self) -> bool:
        """Whether `repair` can mend it; else only a new index does."""
        return self.kind in MENDED


NAMED = 20  # rows, ids or terms that one finding names; the others are counted
# What else lives in the folder of an index.
NEIGHBOURS = frozenset({"config.toml", "root"})

Counts = Counter[str]
Ends = Callable[[], None]  # raises DeadlineError when there is no time left

LIVE = "source NOT IN (SELECT id FROM sources WHERE gone_at IS NOT NULL)"


def findings(
    index: Index,
    *,
    root: Path | None = None,
    rules: Rules | None = None,
    skipped: Container[str] = (),
    expired: Callable[[], bool] | None = None,
    counts: Counts | None = None,
) -> Iterator[Finding]:
    """Yield what is wrong with an index; for any thread.

    Args:
        index: it may be used meanwhile.
        root: of the folder; None leaves the files out.
        rules: which of its files are sources; needed with *root*.
        skipped: paths that are known not to be indexable.
        expired: asked while it works; once it says True, as `Index.log_is_long`, it ends.
        counts: filled with how many sources, chunks, rows, terms and files were looked at; how many chunks
            share their row with an equal text, or have none.

    Raises:
        DeadlineError: it was *expired*.
    """
    counts = Counter() if counts is None else counts
    ends = _ending(expired)
    try:
        with index.view_apart(expired) as view:
            broken = set()
            for finding in _database(view):
                broken.add(finding.kind)
                yield finding
            if "database" not in broken:
                yield from _columns(view)
                yield from _waiting(view)
                yield from _names(view)
                yield from _rows(index, view, counts)
                yield from _derived_files(index, view, broken, ends)
                yield from _chunks(view, counts, broken, ends)
        yield from _strays(index)
        if root is not None and rules is not None:
            yield from _files(index, _files_of(root, rules, counts, ends), skipped)
    except IndexDamagedError as error:
        yield Finding("database", str(error))


def _database(view: View) -> Iterator[Finding]:
    for [line] in view.reader.each("PRAGMA integrity_check"):
        table = next((table for table in TABLES if str(line).endswith(f"FTS5 table main.{table}")), None)
        if line != "ok":
            yield Finding(table or "database", str(line))
    for table in TABLES:
        try:
            rank(view, table)
        except IndexDamagedError as error:
            yield Finding(table, str(error))
            continue
        if lost := without_length(view, table):
            yield Finding(table, f"the table {table} does not know the length of {lost} chunks")
    for table, row, parent, _ in view.reader.each("PRAGMA foreign_key_check"):
        kind = "waiting" if table in dict(WITHOUT) else "database"
        yield Finding(kind, f"row {row} of {table} names something that is not in {parent}")


def _columns(view: View) -> Iterator[Finding]:
    """Compare the columns, and what queries score by, with chunks and vectors."""
    stored: dict[int, tuple[int, ...]] = {
        row[0]: row[1:]
        for row in view.reader.each(
            f"""
            SELECT chunks.id, source, ifnull(row, -1), length FROM chunks
            LEFT JOIN vectors ON vectors.hash = chunks.hash
                AND matrix = (SELECT value FROM meta WHERE key = 'active') WHERE {LIVE}
            """
        )
    }
    kept: dict[int, tuple[int, ...]] = {}
    for row in view.reader.each("SELECT slice, stored, crc FROM columns"):
        kept.update(chunks_in(StoredSlice(*row)))
    if wrong := _differing(stored, kept):
        yield Finding("columns", f"the columns say otherwise than chunks and vectors: {_some(wrong)}")
    if HAS_NUMPY:  # else queries read what is stored
        yield from _published(view, stored)


def _published(view: View, stored: Mapping[int, tuple[int, ...]]) -> Iterator[Finding]:
    """Compare what queries score by with what is stored."""
    columns = view.snapshot.columns
    live = only_living(range(len(columns.source)), columns)
    parts = [take(part, live) for part in (columns.source, columns.row, columns.length)]
    shown = dict(zip(live, zip(*parts, strict=True), strict=True))
    if wrong := _differing(stored, shown):
        yield Finding("published", f"queries see other chunks than are stored: {_some(wrong)}")
    total = sum(row[2] for row in stored.values())
    if (columns.count, columns.total_length) != (len(stored), total):
        yield Finding("published", f"queries count {columns.count} chunks, stored are {len(stored)}")
    paths = {row[0]: row[1] for row in view.reader.each("SELECT id, path FROM sources WHERE gone_at IS NULL")}
    if paths != {number: source.path for number, source in view.snapshot.sources.items()}:
        yield Finding("published", "queries see other sources than are stored")
    if supersession(view.reader.each).edges != view.snapshot.supersession.edges:
        yield Finding("published", "queries see other notes superseded than the files say")


def _differing(one: Mapping[int, object], other: Mapping[int, object]) -> set[int]:
    return {number for number in one.keys() | other.keys() if one.get(number) != other.get(number)}


def _waiting(view: View) -> Iterator[Finding]:
    """Compare who waits for a vector, and who gets none, with who has none."""
    targets = "SELECT value FROM meta WHERE key IN ('active', 'building') ORDER BY key DESC LIMIT 1"
    target = next((number for [number] in view.reader.each(targets)), None)
    bare = f"""
        {LIVE} AND NOT EXISTS (SELECT 1 FROM vectors WHERE matrix = ?1 AND vectors.hash = chunks.hash)
    """
    for table, condition in WITHOUT:
        differs = f"({bare} AND {condition}) <> (id IN (SELECT chunk FROM {table}))"
        wrong = list(view.reader.each(f"SELECT id FROM chunks WHERE {differs}", (target,)))
        if wrong:
            what = (
                "wait in vain, or should wait" if table == "waiting" else "get no vector, or should have none"
            )
            yield Finding("waiting", f"chunks {what}: {_some(row[0] for row in wrong)}")


def _names(view: View) -> Iterator[Finding]:
    """Compare the names of files with what links look for."""
    named = dict(view.reader.each("SELECT source, name FROM names WHERE kind = 'file'"))
    for number, path in view.reader.each("SELECT id, path FROM sources WHERE gone_at IS NULL ORDER BY path"):
        if named.get(number) != key_of(path):
            yield Finding("chunk", f"links do not find {path} by its name", (path,))


# Why a matrix has fewer rows than there are chunks: equal texts have one, and some have none (yet).
_ROWLESS = """
    SELECT count(row) - count(DISTINCT row), count(*) - count(row) FROM chunks
    LEFT JOIN vectors ON vectors.hash = chunks.hash AND matrix = ?
"""


def _rows(index: Index, view: View, counts: Counts) -> Iterator[Finding]:
    """Compare each vector with its checksum."""
    matrices = view.reader.each(
        """
        SELECT number, dim, next_row FROM matrices
        WHERE number IN (SELECT value FROM meta WHERE key IN ('active', 'building'))
        """
    )
    for number, dim, next_row in list(matrices):
        crcs = list(view.reader.each("SELECT row, crc FROM vectors WHERE matrix = ? ORDER BY row", (number,)))
        path = index.folder / matrix_name(number)
        try:
            matrix = Matrix(path, dim=dim, failure=Failure())
        except FileNotFoundError:
            if index.snapshot.generation == view.snapshot.generation:  # else it was compacted meanwhile
                yield Finding("rows", f"{path.name} is not there", (), number, tuple(row for row, _ in crcs))
            continue
        bad = {row for row, _ in crcs if row >= next_row}.union(matrix.damaged(crcs))
        matrix.close()
        counts["rows"] += len(crcs)
        [(shared, bare)] = view.reader.each(_ROWLESS, (number,))
        counts.update({"sharing": shared, "rowless": bare})
        if bad:
            text = f"rows of {path.name} are not what was stored: {_some(bad)}"
            yield Finding("rows", text, (), number, tuple(sorted(bad)))


def _derived_files(index: Index, view: View, broken: Container[str], ends: Ends) -> Iterator[Finding]:
    """Compare each derived file with its checksums, and a part of it with what it was made from."""
    for found in (view.snapshot.postings.file, view.snapshot.codes):
        kind = found.file.kind if found is not None else ""
        if found is None or (kind == "postings" and "words" in broken):
            continue
        try:
            text = flaw(found, view, ends)
        except IndexDamagedError as error:
            yield Finding("words", str(error))
            continue
        if text and any(keeper.usable is found for keeper in index.derived):  # else it was replaced
            yield Finding(kind, f"the file of {kind}: {text}")


def _chunks(view: View, counts: Counts, broken: Container[str], ends: Ends) -> Iterator[Finding]:
    """Derive again what follows from the text of each chunk."""
    wrong: set[str] = set()
    again = Rederived()
    try:
        again.fill(_derived(view, counts, wrong, ends))
        for path in sorted(wrong):
            yield Finding("chunk", f"chunks of {path} are not what their text says", (path,))
        for table in TABLES:
            if table in broken:
                continue
            try:
                terms = again.differing(view.reader, table)
            except IndexDamagedError as error:
                yield Finding(table, str(error))
                continue
            if terms:
                yield Finding(table, f"{terms} terms of the table {table} do not stand where it says")
    finally:
        again.close()


def _derived(view: View, counts: Counts, wrong: set[str], ends: Ends) -> Iterator[Texts]:
    """Yield what full-text search should know of each chunk; collect whose facts differ."""
    seen: Counter[int] = Counter()  # source → chunks
    rows = view.reader.each(
        """
        SELECT chunks.id, source, path, heading, context, text, chunks.hash, signature, length, beyond,
            chunks.scripts
        FROM chunks CROSS JOIN sources ON sources.id = source ORDER BY chunks.id
        """
    )
    for number, source, path, heading, context, text, *stored in rows:
        ends()
        read = chunk_text.read_by_model(context, text)
        words, trigrams = chunk_text.full_texts(read, path, first=not seen[source])
        beyond = is_beyond(seen[source])
        seen[source] += 1
        length = len(view.reader.indexed_terms(words))
        scripts = " ".join(scripts_of(read))
        if [chunk_text.hash_of(read), signature(heading, text), length, beyond, scripts] != stored:
            wrong.add(path)
        yield number, words, trigrams
        counts["chunks"] += 1
    counts["sources"] += len(seen)


def _strays(index: Index) -> Iterator[Finding]:
    """Name what is in the folder and belongs to nothing."""
    ours = {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"} | NEIGHBOURS
    for path in sorted(index.folder.iterdir()):
        if any(name.fullmatch(path.name) for name in FILE_NAMES) and not path.is_dir():
            if not index.owns(path):
                yield Finding("stray", f"{path.name} belongs to nothing", (path.name,))
        elif path.name not in ours:
            yield Finding("foreign", f"{path.name} is none of memd's files")


def _files(
    index: Index, files: Iterable[tuple[str, SourceText | None]], skipped: Container[str]
) -> Iterator[Finding]:
    """Compare the sources with the files that they were read from."""
    with index.view_apart() as view:
        rows = view.reader.each(
            "SELECT path, hash, mtime_ns, ctime_ns, size_bytes, inode FROM sources WHERE gone_at IS NULL"
        )
        known = {row[0]: (row[1], FileStamp(*row[2:])) for row in rows}
    found = set()
    for path, text in files:
        found.add(path)
        if text is None:
            continue
        if path not in known:
            if path not in skipped:
                yield Finding("unindexed", f"{path} is not indexed", (path,))
        elif known[path][1] == text.stamp and known[path][0] != text.hash:
            yield Finding("stale", f"{path} has other bytes than were indexed, with the same stamp", (path,))
    for path in sorted(known.keys() - found):
        yield Finding("absent", f"{path} is indexed and not there", (path,))


def _files_of(
    root: Path, rules: Rules, counts: Counts, ends: Ends
) -> Iterator[tuple[str, SourceText | None]]:
    """Yield the path of each source with what is in it; None where that can't be indexed."""
    for entry in walk(root, rules):
        if isinstance(entry, tuple):
            ends()
            counts["files"] += 1
            text = read_source(root, entry[0], now_ns=time.time_ns())
            yield entry[0], text if isinstance(text, SourceText) else None


def _ending(expired: Callable[[], bool] | None) -> Ends:
    def ends() -> None:
        if expired is not None and expired():
            raise DeadlineError("the check was given up")

    return ends


def _some(numbers: Iterable[int]) -> str:
    listed = sorted(numbers)
    shown = ", ".join(map(str, listed[:NAMED]))
    return shown if len(listed) <= NAMED else f"{shown} and {len(listed) - NAMED} more"


def rank_all(view: View) -> None:
    """Rank the chunks of one term of each full-text table by FTS5's score.

    Raises:
        IndexDamagedError: that can't be done.
    """
    for table in TABLES:
        rank(view, table)


def rank(view: View, table: str) -> None:
    """Do it for one *table*.

    Raises:
        IndexDamagedError: as said above.
    """
    for [term] in view.reader.each(f"SELECT term FROM {TABLES[table]} WHERE term > '' LIMIT 1"):
        expression = '"' + term.replace('"', '""') + '"'
        ranked = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT 1"
        list(view.reader.each(ranked, (expression,)))


def without_length(view: View, table: str) -> int:
    """Return of how many chunks a full-text *table* has lost the length."""
    lost = view.reader.each(f"SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM {table}_docsize)")
    return sum(int(row[0]) for row in lost)

"""Consistency check of an index, repair of its findings, and the background scrub of vector rows.

The check derives each invariant again from its source and compares. It is read-only and uses a connection of
its own, so it can run beside queries and saves; it sees one consistent state. The integrity check of FTS5 is
not sufficient: the tables are contentless (`content=''`), so it cannot compare them with the text, and it
reports no error when the document lengths that ranking divides by are lost. Queries compute BM25 from memd's
own counts, so no query would fail either.

The repair runs in the writing thread, in slices. Everything except the Markdown is derived, so a repair
derives the data again: a table from the chunks, vectors by the model, chunks from the files.

The scrub compares every row with its checksum, as file systems do: in the background, since reading a
million rows takes seconds, and rows that no query reads may be damaged as well.
"""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final

from memd import fsio
from memd.entries.secrets import mask
from memd.errors import DeadlineError, IndexDamagedError
from memd.fsio import Failure
from memd.index import postings_table
from memd.index.columns import HAS_NUMPY, StoredSlice, chunks_in, only_living, take
from memd.index.database import FRONT, open_scratch
from memd.index.index import DATABASE, FILE_NAMES, Index
from memd.index.indexer import PARSING
from memd.index.links import key_of, supersession
from memd.index.matrices import Stepwise
from memd.index.snapshot import View
from memd.index.source_rows import (
    AGENTS,
    PEOPLE,
    SESSION,
    fields_of,
    full_texts,
    hash_of,
    is_beyond,
    read_by_model,
    signature,
)
from memd.index.vector_table import BARE, WHY
from memd.index.vectors import Matrix, Rows, matrix_name
from memd.records import FileStamp, SourceText
from memd.sources.scan import Rules, read_source, walk
from memd.text import scripts_of

# What `Repair` mends, in this order: "columns" after the data that columns are derived from, and "published"
# last, since it shows the result of all others. Not "database": the index is built anew; nor "foreign", which
# memd neither reads nor removes.
MENDED: Final = (
    "words", "trigrams", "chunk", "rows", "postings", "codes", "waiting", "stray", "unfinished", "stale",
    "unindexed", "absent", "columns", "published",
)  # fmt: skip

TABLES: Final = {"words": "temp.word_postings", "trigrams": "temp.trigram_postings"}
NEIGHBOURS = frozenset({"config.toml", "root"})  # other entries in the folder of an index
NAMED = 20  # rows, ids or terms that one finding lists; the rest is counted
BATCH = 500  # chunks passed to FTS5 at once
CHUNKS_AT_ONCE = 64  # written to a full-text table in one commit: some 20 ms
CHECKSUMS_AT_ONCE = 10_000  # read by one statement: 10 ms
ROWS_AT_ONCE = 4_096  # compared between two checks of the time: 6 MB, some ms for 384 dimensions

PATHS = "SELECT id, path FROM sources WHERE gone_at IS NULL ORDER BY path"
LIVE = "source NOT IN (SELECT id FROM sources WHERE gone_at IS NOT NULL)"
# Why a matrix has fewer rows than there are chunks: equal texts share one, and some chunks have none (yet).
ROWLESS = """
    SELECT count(row) - count(DISTINCT row), count(*) - count(row) FROM chunks
    LEFT JOIN vectors ON vectors.hash = chunks.hash AND matrix = ?
"""
# The postings of a term condensed to a few numbers; trigrams have no offsets. A posting that is missing,
# superfluous or moved changes at least one of the sums; two errors would have to cancel out in all of them.
# 65,521 is the largest prime below 2**16: products stay far below 2**63.
SUMS = """
    SELECT term, count(*), sum(doc), sum(offset), sum((doc % 65521) * (ifnull(offset, doc) % 65521 + 1))
    FROM {places} GROUP BY term
"""

Counts = Counter[str]
Stored = dict[int, tuple[int, ...]]  # chunk → its source, row and length
Ends = Callable[[], None]  # raises DeadlineError when there is no time left
Texts = tuple[int, str, str]  # chunk, its text in the words table, its text in the trigrams table


@dataclass(frozen=True, slots=True)
class Finding:
    """One inconsistency."""

    kind: str  # one of MENDED, "database" or "foreign"
    text: str  # one line: the inconsistency and where it is
    names: tuple[str, ...] = ()  # paths of sources or names of files that the repair needs
    matrix: int = 0
    rows: tuple[int, ...] = ()

    @property
    def repairable(self) -> bool:
        """Whether `repair` can fix it; otherwise only a rebuild of the index does."""
        return self.kind in MENDED


def findings(
    index: Index,
    *,
    root: Path | None = None,
    rules: Rules | None = None,
    skipped: Container[str] = (),
    expired: Callable[[], bool] | None = None,
    counts: Counts | None = None,
) -> Iterator[Finding]:
    """Yield the inconsistencies of an index; for any thread.

    Args:
        index: may be used by others during the check.
        root: of the workspace; None: files are not checked.
        rules: which files are sources; required with *root*.
        skipped: paths that are known not to be indexable.
        expired: polled during the check, which ends when it returns True (as `Index.log_is_long` does).
        counts: receives the numbers of sources, chunks, rows, terms and files checked, and how many chunks
            share their row with an equal text or have none.

    Raises:
        DeadlineError: *expired* returned True.
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
                paths = dict(view.reader.each(PATHS))
                stored = yield from _columns(view)
                yield from _waiting(view)
                named = dict(view.reader.each("SELECT source, name FROM names WHERE kind = 'file'"))
                for number, path in paths.items():
                    if named.get(number) != key_of(path):
                        yield Finding("chunk", f"links do not find {path} by its name", (path,))
                yield from _fields(view, paths)
                yield from _rows(index, view, counts)
                if HAS_NUMPY:  # otherwise queries read the database itself
                    yield from _published(view, stored, paths)
                    yield from _postings(view, broken, ends)
                    yield from _codes(index, view)
                yield from _chunks(view, counts, broken, ends)
        yield from _strays(index)
        if root is not None and rules is not None:
            yield from _files(index, root, rules, skipped, counts, ends)
    except IndexDamagedError as error:
        yield Finding("database", str(error))


class Repair(Stepwise):
    """Repairs findings, in steps."""

    def __init__(self, index: Index, findings: Iterable[Finding]) -> None:
        self.mended: set[Finding] = set()
        self.paths: set[str] = set()  # of sources that must be indexed again, or looked up on the disk
        self._index = index
        self._findings = [finding for finding in findings if finding.repairable]
        self._steps = self._all_steps()

    def _all_steps(self) -> Iterator[None]:
        for kind in MENDED:
            found = [finding for finding in self._findings if finding.kind == kind]
            if found and kind in TABLES:
                yield from self._refilled(kind)
            if found and kind == "postings":
                yield from self._without_postings()
            for finding in found:
                self._mend(finding)
                self.mended.add(finding)
                yield

    def _mend(self, finding: Finding) -> None:
        index = self._index
        at_once = {
            "codes": index.codes.drop,
            "waiting": index.refill_waiting,
            "columns": index.refill_columns,
            "published": index.publish_again,
        }
        if finding.kind in {"chunk", "stale", "unindexed", "absent"}:
            with index.writer.transaction():
                index.writer.forget_stamps(finding.names)
            self.paths.update(finding.names)
        elif finding.kind == "rows":
            index.forget_rows(finding.matrix, finding.rows)
        elif finding.kind == "stray":
            for name in finding.names:
                path = index.folder / name
                if any(one.fullmatch(name) for one in FILE_NAMES) and not index.owns(path):
                    fsio.remove(path)
        elif finding.kind in at_once:  # elsewhere: leftovers of a killed process
            at_once[finding.kind]()

    def _refilled(self, table: str) -> Iterator[None]:
        """Fill a new full-text table while the old one still answers queries."""
        if table == "words":
            yield from self._without_postings()
        writer = self._index.writer
        with writer.transaction():
            writer.begin_refill(table)
        while True:
            with writer.transaction():
                chunks = writer.chunks_to_refill(table, CHUNKS_AT_ONCE)
                if not chunks:
                    writer.finish_refill(table)
                    break
                for chunk_id, path, context, text, front in chunks:
                    read = read_by_model(context, text)
                    words, trigrams = full_texts(read, path, front)
                    writer.refill(table, chunk_id, words if table == "words" else trigrams)
            yield
        self._index.publish_again()

    def _without_postings(self) -> Iterator[None]:
        while self._index.postings.drop_some():
            yield


def repair(index: Index, findings: Iterable[Finding]) -> Repair:
    """Repair all repairable findings, however long that takes; return the finished repair."""
    mending = Repair(index, findings)
    while not mending.step(1.0):
        pass
    return mending


class Scrub(Stepwise):
    """One pass over the open matrices. Create it and call `forget` in the writing thread."""

    def __init__(self, index: Index) -> None:
        self._index = index
        held = (index.matrices.active, index.matrices.building)
        self._matrices = [(one.number, one.rows) for one in held if one is not None]
        self._damaged: list[tuple[Rows, list[int]]] = []
        self._steps = self._all_steps()

    @property
    def damaged_count(self) -> int:
        """The number of damaged rows found."""
        return sum(len(damaged) for _, damaged in self._damaged)

    def forget(self) -> int:
        """Drop the damaged rows, so that their texts are embedded again; return how many were dropped."""
        return sum(self._index.forget_damaged(rows, damaged) for rows, damaged in self._damaged)

    def _all_steps(self) -> Iterator[None]:
        for number, rows in self._matrices:
            damaged: list[int] = []
            digest = b""
            while True:
                with self._index.view_apart() as view:
                    digest, crcs = view.reader.checksums_after(number, digest, CHECKSUMS_AT_ONCE)
                if not crcs:
                    break
                damaged += rows.learn(crcs)
                yield
            for start in range(0, rows.count, ROWS_AT_ONCE):
                some = range(start, min(start + ROWS_AT_ONCE, rows.count))
                damaged += rows.damaged(row for row in some if rows.crcs[row])  # 0: not in use
                yield
            if damaged:
                self._damaged.append((rows, damaged))


def rank_all(view: View) -> None:
    """Rank the chunks of one term in each full-text table with FTS5's own bm25.

    Raises:
        IndexDamagedError: ranking failed.
    """
    for table in TABLES:
        _rank(view, table)


def _database(view: View) -> Iterator[Finding]:
    for [line] in view.reader.each("PRAGMA integrity_check"):
        table = next((table for table in TABLES if str(line).endswith(f"FTS5 table main.{table}")), None)
        if line != "ok":
            yield Finding(table or "database", str(line))
    for table in TABLES:
        try:
            _rank(view, table)
        except IndexDamagedError as error:
            yield Finding(table, str(error))
            continue
        [(lost,)] = view.reader.each(
            f"SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM {table}_docsize)"
        )
        if lost:
            yield Finding(table, f"the table {table} does not know the length of {lost} chunks")
    for table, row, parent, _ in view.reader.each("PRAGMA foreign_key_check"):
        kind = "waiting" if table == "unembedded" else "database"
        yield Finding(kind, f"row {row} of {table} names something that is not in {parent}")


def _rank(view: View, table: str) -> None:
    """Do `rank_all` for one *table*."""
    for [term] in view.reader.each(f"SELECT term FROM {TABLES[table]} WHERE term > '' LIMIT 1"):
        expression = '"' + term.replace('"', '""') + '"'
        ranked = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT 1"
        list(view.reader.each(ranked, (expression,)))


def _columns(view: View) -> Generator[Finding, None, Stored]:
    """Compare the stored columns with chunks and vectors; return what these say."""
    stored: Stored = {
        row[0]: row[1:]
        for row in view.reader.each(
            f"SELECT id, source, row, length FROM placed WHERE {LIVE} AND hidden_from != {PEOPLE}"
        )
    }
    kept: dict[int, tuple[int, ...]] = {}
    for row in view.reader.each("SELECT slice, stored, crc FROM columns"):
        kept.update(chunks_in(StoredSlice(*row)))
    if wrong := _differing(stored, kept):
        yield Finding("columns", f"the columns say otherwise than chunks and vectors: {_some(wrong)}")
    return stored


def _published(view: View, stored: Stored, paths: Mapping[int, str]) -> Iterator[Finding]:
    """Compare the published columns, sources and supersession with the database."""
    columns = view.snapshot.columns
    live = only_living(range(len(columns.source)), columns)
    parts = [take(part, live) for part in (columns.source, columns.row, columns.length)]
    shown = dict(zip(live, zip(*parts, strict=True), strict=True))
    if wrong := _differing(stored, shown):
        yield Finding("published", f"queries see other chunks than are stored: {_some(wrong)}")
    total = sum(row[2] for row in stored.values())
    if (columns.count, columns.total_length) != (len(stored), total):
        yield Finding("published", f"queries count {columns.count} chunks, stored are {len(stored)}")
    if paths != {number: source.path for number, source in view.snapshot.sources.items()}:
        yield Finding("published", "queries see other sources than are stored")
    if supersession(view.reader.each).edges != view.snapshot.supersession.edges:
        yield Finding("published", "queries see other notes superseded than the files say")


def _differing(one: Mapping[int, object], other: Mapping[int, object]) -> set[int]:
    return {number for number in one.keys() | other.keys() if one.get(number) != other.get(number)}


def _waiting(view: View) -> Iterator[Finding]:
    """Compare the list of chunks that wait for a vector, or get none, with the chunks without a vector."""
    targets = "SELECT value FROM meta WHERE key IN ('active', 'building') ORDER BY key DESC LIMIT 1"
    target = next((number for [number] in view.reader.each(targets)), None)
    wrong = [
        number
        for [number] in view.reader.each(
            f"""
            SELECT id FROM chunks LEFT JOIN unembedded ON chunk = id
            WHERE why IS NOT CASE WHEN {LIVE} AND {BARE} THEN {WHY} END
            """,
            (target,),
        )
    ]
    if wrong:
        yield Finding("waiting", f"chunks wait for a vector, or get none, and should not: {_some(wrong)}")


def _fields(view: View, paths: Mapping[int, str]) -> Iterator[Finding]:
    """Compare the fields that filters use with the front matter that they are from."""
    stored: defaultdict[int, set[tuple[str, str]]] = defaultdict(set)
    for source, key, value in view.reader.each("SELECT source, key, value FROM fields"):
        stored[source].add((key, value))
    for source, front in view.reader.each("SELECT id, front_matter FROM sources WHERE gone_at IS NULL"):
        # A daily file also has the conversations of its entries, which are not in its front matter.
        if {one for one in stored[source] ^ _fields_in(front) if one[0] != SESSION}:
            path = paths[source]
            yield Finding(
                "chunk", f"the filters' copy of the front matter of {path} differs from the file", (path,)
            )


def _fields_in(front: str) -> frozenset[tuple[str, str]]:
    try:
        return fields_of(json.loads(front))
    except (ValueError, AttributeError):  # a damaged text: its source is read again
        return frozenset({(front, "")})


def _rows(index: Index, view: View, counts: Counts) -> Iterator[Finding]:
    """Compare each row with its checksum."""
    matrices = view.reader.each(
        """
        SELECT number, dim, next_row FROM matrices
        WHERE number IN (SELECT value FROM meta WHERE key IN ('active', 'building'))
        """
    )
    for number, dim, next_row in list(matrices):
        _, crcs = view.reader.checksums_after(number, b"", -1)
        path = index.folder / matrix_name(number)
        try:
            matrix = Matrix(index.folder, number, dim=dim, failure=Failure())
        except FileNotFoundError:
            if index.snapshot.generation == view.snapshot.generation:  # otherwise a compaction replaced it
                yield Finding("database", f"{path.name} is not there")
            continue
        matrix.use(min(next_row, matrix.room))
        rows = matrix.rows  # by checksums of their own
        matrix.close()
        bad = {*rows.learn(crcs), *rows.damaged(row for row, _ in crcs if row < rows.count)}
        counts["rows"] += len(crcs)
        [(shared, bare)] = view.reader.each(ROWLESS, (number,))
        counts.update({"sharing": shared, "rowless": bare})
        if bad:
            text = f"rows of {path.name} are not what was stored: {_some(bad)}"
            yield Finding("rows", text, (), number, tuple(sorted(bad)))


def _postings(view: View, broken: Container[str], ends: Ends) -> Iterator[Finding]:
    """Verify the checksum of each row of postings, and compare samples with FTS5."""
    if "words" in broken:
        return
    try:
        text = postings_table.flaw(view, ends)
    except IndexDamagedError as error:
        yield Finding("words", str(error))
        return
    if text:
        yield Finding("postings", f"the table of postings: {text}")


def _codes(index: Index, view: View) -> Iterator[Finding]:
    """Verify the checksum of the file of codes, and compare samples with the rows."""
    file, codes = index.codes.current, view.snapshot.codes
    text = file.flaw(codes, view.snapshot.rows) if file is not None and codes is not None else ""
    if text and index.codes.current is file and index.codes.usable is codes:  # otherwise it was replaced
        yield Finding("codes", f"the file of codes: {text}")


def _chunks(view: View, counts: Counts, broken: Container[str], ends: Ends) -> Iterator[Finding]:
    """Derive the data of each chunk from its text again, the full-text tables in a scratch database."""
    wrong: set[str] = set()
    with closing(open_scratch()) as again:
        texts = _derived(view, counts, wrong, ends)
        while batch := list(islice(texts, BATCH)):
            with again:
                for place, table in enumerate(TABLES, 1):
                    rows = ((one[0], one[place]) for one in batch)
                    again.executemany(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", rows)
        for path in sorted(wrong):
            yield Finding("chunk", f"chunks of {path} are not what their text says", (path,))
        for table, places in TABLES.items():
            if table in broken:
                continue
            statement = SUMS.format(places=places)
            try:
                terms = _differences(again.execute(statement), view.reader.each(statement))
            except IndexDamagedError as error:
                yield Finding(table, str(error))
                continue
            if terms:
                yield Finding(table, f"{terms} terms of the table {table} do not stand where it says")


def _derived(view: View, counts: Counts, wrong: set[str], ends: Ends) -> Iterator[Texts]:
    """Yield the full-text content of each chunk; add the paths of wrong sources to *wrong*."""
    seen: Counter[tuple[int, int]] = Counter()  # source and who does not see them → chunks
    rows = view.reader.each(
        f"""
        SELECT chunks.id, source, path, {FRONT}, heading, context, text, chunks.hash, signature, length,
            beyond, chunks.scripts, hidden_from
        FROM whole_chunks AS chunks CROSS JOIN sources ON sources.id = source ORDER BY chunks.id
        """
    )
    for number, source, path, front, heading, context, text, *stored, hidden_from in rows:
        ends()
        read = read_by_model(context, text)
        words, trigrams = full_texts(read, path, front)
        beyond = is_beyond(seen[source, hidden_from])
        seen[source, hidden_from] += 1
        length = len(view.reader.indexed_terms(words))
        scripts = " ".join(scripts_of(read))
        embedded = mask(read) if hidden_from == AGENTS else read
        if [hash_of(embedded), signature(heading, text), length, beyond, scripts] != stored:
            wrong.add(path)
        yield number, words, trigrams
        counts["chunks"] += 1
    counts["sources"] += len({source for source, _ in seen})


def _differences(one: Iterable[tuple[Any, ...]], other: Iterable[tuple[Any, ...]]) -> int:
    """Count the terms whose rows differ between two lists that are sorted by term."""
    by_term = groupby(merge(one, other, key=_term), key=_term)
    return sum(1 for _, (row, *same) in by_term if same != [row])


def _term(row: tuple[Any, ...]) -> bytes:
    return str(row[0]).encode()


def _strays(index: Index) -> Iterator[Finding]:
    """Report files in the folder of the index that do not belong to it."""
    ours = {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"} | NEIGHBOURS
    for path in sorted(index.folder.iterdir()):
        if any(name.fullmatch(path.name) for name in FILE_NAMES) and not path.is_dir():
            if not index.owns(path):
                yield Finding("stray", f"{path.name} belongs to nothing", (path.name,))
        elif path.name not in ours and not path.name.startswith(PARSING):
            yield Finding("foreign", f"{path.name} is none of memd's files")


def _files(  # noqa: PLR0917 - what `findings` was given
    index: Index, root: Path, rules: Rules, skipped: Container[str], counts: Counts, ends: Ends
) -> Iterator[Finding]:
    """Compare the indexed sources with their files."""
    with index.view_apart() as view:
        rows = view.reader.each(
            "SELECT path, hash, mtime_ns, ctime_ns, size_bytes, inode FROM sources WHERE gone_at IS NULL"
        )
        known = {row[0]: (row[1], FileStamp(*row[2:])) for row in rows}
    found = set()
    for entry in walk(root, rules):
        if not isinstance(entry, tuple):
            continue
        ends()
        path = entry[0]
        counts["files"] += 1
        found.add(path)
        text = read_source(root, path, now_ns=time.time_ns())
        if not isinstance(text, SourceText):  # it cannot be indexed
            continue
        if path not in known:
            if path not in skipped:
                yield Finding("unindexed", f"{path} is not indexed", (path,))
        elif known[path][1] == text.stamp and known[path][0] != text.hash:
            yield Finding("stale", f"{path} has other bytes than were indexed, with the same stamp", (path,))
    for path in sorted(known.keys() - found):
        yield Finding("absent", f"{path} is indexed and not there", (path,))


def _ending(expired: Callable[[], bool] | None) -> Ends:
    def ends() -> None:
        if expired is not None and expired():
            raise DeadlineError("the check was given up")

    return ends


def _some(numbers: Iterable[int]) -> str:
    listed = sorted(numbers)
    shown = ", ".join(map(str, listed[:NAMED]))
    return shown if len(listed) <= NAMED else f"{shown} and {len(listed) - NAMED} more"

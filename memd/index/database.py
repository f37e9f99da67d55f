"""The SQLite database of an index: its schema, its connections, and the translation of SQLite's errors.

The full-text tables are contentless: the text is stored once, as in the file and packed in ``texts``, and the
indexed form is derived from it (``memd.text``). They can be dropped and refilled at any time. Statements read
texts in the view ``whole_chunks``, which unpacks them.

A chunk has no reference to a row: `vectors` maps the hash of a text to a row, for each matrix. So equal texts
are embedded once, a second matrix is built without changing any chunk, and switching to it changes one value
in `meta` ("active", "building").

`Database` is the only connection that writes. It records whether the index was closed cleanly: one that
was not is checked before use, since SQLite's own files (the WAL) may have been lost or changed meanwhile.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, cast

import apsw

from memd import fsio
from memd.errors import (
    DeadlineError,
    IndexClosedError,
    IndexDamagedError,
    MemdError,
    NoSpaceError,
    SchemaError,
    StorageError,
    storage_error,
)
from memd.fsio import Failure
from memd.index.texts import part_of

SCHEMA_VERSION = 19  # of the tables; an index with another version is rebuilt

# unicode61 keeps letters and digits; Mn and Mc keep the vowel signs of Indic scripts inside their words.
# remove_diacritics 2 also handles code points that combine a letter with several diacritics.
# Signs are words (memd.text says which), but not those of ASCII.
WORDS_TOKENIZER = (
    *("unicode61", "remove_diacritics", "2"),
    *("categories", "L* N* Co Mn Mc Sc Sm So", "separators", "$+<=>|~"),
)

SCHEMA = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- from 1: 0 stands for "no source"
    path TEXT NOT NULL UNIQUE,             -- relative to the workspace, "/" on every platform
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    hash BLOB NOT NULL,                    -- of the file's bytes
    title TEXT NOT NULL,
    tags TEXT NOT NULL,                    -- JSON list
    day TEXT NOT NULL,                     -- ISO date
    day_of TEXT NOT NULL,                  -- memd.records.DayOf: where it is from
    origin TEXT NOT NULL,
    front_matter TEXT NOT NULL,            -- JSON object
    warnings TEXT NOT NULL,                -- JSON list
    private INTEGER NOT NULL,              -- 1: it says that no agent may have it
    valid_until TEXT NOT NULL,             -- ISO date: the last day on which it holds; "": no end
    evergreen INTEGER NOT NULL,            -- 1: its score does not decay, whatever its name is
    external INTEGER NOT NULL,             -- 1: it is derived from an external source, as the web
    gone_at INTEGER,                       -- unix seconds: not on the disk since; NULL while it is live
    changed INTEGER NOT NULL DEFAULT 0,    -- generation in which it was stored last, came or went
    told TEXT NOT NULL                     -- title and tags as agents see them, as JSON; "": the same
) STRICT;
CREATE INDEX sources_gone ON sources (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX sources_warned ON sources (path) WHERE warnings != '[]';
CREATE INDEX sources_private ON sources (id) WHERE private;
CREATE INDEX sources_told ON sources (id) WHERE told != '';

CREATE TABLE names (                       -- what links call a source: memd.index.links
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,                    -- "file", "alias" or "id"
    name TEXT NOT NULL,                    -- as it is looked for
    PRIMARY KEY (source, kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX names_by_name ON names (name);

CREATE TABLE links (                       -- of a source to others; resolved when they are asked for
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,                -- counts the links of a source, those of the front matter first
    kind TEXT NOT NULL,                    -- as it is written: memd.records.LinkKind
    target TEXT NOT NULL,                  -- as it is written
    part TEXT NOT NULL,                    -- the heading or block that it names
    name TEXT NOT NULL,                    -- that the target is looked for by
    line INTEGER,                          -- NULL: in the front matter
    column INTEGER NOT NULL,               -- in characters, from 1; 0: in the front matter
    PRIMARY KEY (source, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_name ON links (name);
CREATE INDEX links_superseding ON links (source) WHERE kind = 'supersedes';

CREATE TABLE outlines (                    -- what a note offers to links, unless that is its title above all
    source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    aliases TEXT NOT NULL,                 -- JSON list
    headings TEXT NOT NULL                 -- JSON list of [line, level, title]
) STRICT;

CREATE TABLE fields (                      -- of the front matter: memd.index.source_rows.fields_of
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (key, value, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX fields_by_source ON fields (source);

CREATE TABLE secret_fields (               -- of sources with secrets in them: as only people see them
    source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (key, value, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX secret_fields_by_source ON secret_fields (source);
CREATE VIEW whole_fields AS
    SELECT * FROM fields WHERE source NOT IN (SELECT source FROM secret_fields)
    UNION ALL SELECT * FROM secret_fields;

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: what is dead stays dead in a snapshot
    source INTEGER NOT NULL REFERENCES sources (id),
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    start_byte INTEGER NOT NULL,           -- of the first line, that the text begins at
    signature BLOB NOT NULL,               -- memd.index.source_rows
    place INTEGER NOT NULL,                -- from 0, among the chunks whose texts are packed together
    hash BLOB NOT NULL,                    -- of what the model reads
    length INTEGER NOT NULL,               -- in terms
    beyond INTEGER NOT NULL,               -- 1: beyond the first chunks of a long source, it gets no vector
    scripts TEXT NOT NULL,                 -- of what the model reads, parted by spaces; "" without letters
    entry TEXT NOT NULL,                   -- id of the daily entry that it is from; "" of none
    origin TEXT NOT NULL,                  -- who wrote that entry; "": the source says so
    assistant REAL NOT NULL,               -- share of its lines that an assistant said in a conversation
    hidden_from INTEGER NOT NULL           -- 1: agents, it has a secret; 2: people, who see that; 0: nobody
) STRICT;
CREATE INDEX chunks_by_source ON chunks (source, hidden_from);
CREATE INDEX chunks_hidden ON chunks (hidden_from) WHERE hidden_from;
CREATE INDEX chunks_by_hash ON chunks (hash);
CREATE INDEX chunks_by_entry ON chunks (entry) WHERE entry != '';

CREATE TABLE texts (                       -- of some consecutive chunks of a source
    first INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
    packed BLOB NOT NULL                   -- memd.index.texts
) STRICT;

CREATE TABLE matrices (
    number INTEGER PRIMARY KEY,            -- of its file; one that is neither active nor building is waste
    model_id TEXT NOT NULL,
    dim INTEGER NOT NULL,
    next_row INTEGER NOT NULL,             -- only grows: a row is never used twice inside a file
    scripts TEXT                           -- JSON list of those that the model reads; NULL: all
) STRICT;

CREATE TABLE vectors (
    matrix INTEGER NOT NULL REFERENCES matrices (number),
    hash BLOB NOT NULL,                    -- of what the model read
    row INTEGER NOT NULL,
    crc INTEGER NOT NULL,                  -- CRC-32 of the row's bytes
    PRIMARY KEY (matrix, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE columns (                     -- memd.index.columns
    slice INTEGER PRIMARY KEY,             -- of the ids of chunks
    stored BLOB NOT NULL,                  -- source, row of the active matrix and length of each, packed
    crc INTEGER NOT NULL                   -- CRC-32 of the slice and what is stored
) STRICT;

CREATE TABLE postings (                    -- of frequent terms, out of words: memd.index.postings_table
    term TEXT NOT NULL PRIMARY KEY,        -- or prefix
    upto INTEGER NOT NULL,                 -- in all chunks with ids up to this one
    ids BLOB,                              -- of the chunks; NULL: counts has every id from 0 on
    counts BLOB NOT NULL,
    crc INTEGER NOT NULL                   -- CRC-32 of the other values
) STRICT;

CREATE TABLE unembedded (                  -- chunks of live sources without a vector of the model we want
    chunk INTEGER PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
    why TEXT NOT NULL                      -- memd.index.vector_table.Why
) STRICT;
CREATE INDEX unembedded_by_why ON unembedded (why) WHERE why != 'waiting';  -- at first all wait

CREATE TABLE outbox (                      -- of a published workspace: memd.index.outbox
    path TEXT PRIMARY KEY,                 -- of a source that the team's store has, or shall have
    revision INTEGER NOT NULL,             -- of its newest change
    due INTEGER NOT NULL,                  -- 0: the store has this revision; 1: to be sent; 2: to be removed
    sent INTEGER NOT NULL                  -- 1: the store may have some revision of it
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_due ON outbox (due, revision) WHERE due;
"""

# The chunks with their texts: a temporary view, as it needs a function of memd's. And with the rows of their
# vectors in the active matrix, -1 for none.
VIEWS = """
    CREATE VIEW temp.whole_chunks AS
    SELECT chunks.*, packed, unpacked(packed, place, 0) AS heading, unpacked(packed, place, 1) AS context,
        unpacked(packed, place, 2) AS text
    FROM main.chunks LEFT JOIN main.texts ON first = chunks.id - place;

    CREATE VIEW temp.placed AS
    SELECT id, source, ifnull(row, -1) AS row, length, hidden_from FROM main.chunks
    LEFT JOIN main.vectors ON vectors.hash = chunks.hash
        AND matrix = (SELECT value FROM main.meta WHERE key = 'active');
"""

# The front matter of a chunk's source, if the chunk is its first.
FRONT = """
    CASE WHEN chunks.id = (
        SELECT min(id) FROM chunks AS other
        WHERE other.source = chunks.source AND other.hidden_from = chunks.hidden_from
    ) THEN front_matter END
"""
FULL_TEXT = {  # table → its FTS5 options
    "words": f"""tokenize="{" ".join(f"'{part}'" for part in WORDS_TOKENIZER)}\"""",
    # Each distinct trigram of a chunk's words, separated by spaces and without positions: a search for a
    # part of a word verifies candidates against the text. With positions and trigrams across words the
    # table would take three times the size of the text; this way it takes a third.
    "trigrams": "tokenize=ascii, detail=none",
}

# One row for each occurrence of a term; a temporary table, not stored in the file.
WORD_POSTINGS = "CREATE VIRTUAL TABLE temp.word_postings USING fts5vocab (main, words, instance)"
TERMS = "CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, words, row)"  # one row per term
TRIGRAM_POSTINGS = "CREATE VIRTUAL TABLE temp.trigram_postings USING fts5vocab (main, trigrams, instance)"

BUSY_TIMEOUT_MS = 5000  # only memd's own checkpoint can hold the lock, for a moment
# With 8 KiB the twenty tables and indexes that are mostly empty take a tenth of a small index, and each save
# writes more to the log; with 2 KiB the pages of FTS5, of 4 KB, do not fit into one.
PAGE_BYTES = 4096
JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024  # the WAL is truncated to this after a checkpoint
# Tables in which a lost page would be noticed late or never; full-text tables have checks of their own.
LOOKED_THROUGH = (
    *("meta", "sources", "names", "links", "fields", "secret_fields", "chunks", "texts", "matrices"),
    *("vectors", "columns", "postings", "unembedded", "outbox"),
)
# More unused pages than these are given back: merges in the full-text tables leave a sixth of a first index.
LOOSE_PAGES, LOOSE_SHARE = 64, 1 / 16
GIVEN_PAGES = 256  # back at once: some ms
# Length of the log, in pages, at which `Database` checkpoints after a commit. SQLite's automatic checkpoint
# ignores a failing disk, so that more and more acknowledged commits would exist only in the log.
LOG_PAGES = 2000  # 8 MB

SEEN = "seen_generation"  # key in meta: of the last commit that agents see

READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

Row = tuple[Any, ...]
Terms = Callable[[str], list[str]]
Match = apsw.FTS5ExtensionApi  # the argument of an FTS5 auxiliary function

_DEVICE = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)
# The last two can't come from memd's statements on intact tables: a duplicate row, a text as an id.
_DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.ConstraintError, apsw.MismatchError)
# SQLite reports full-text tables and schemas with lost pages or bits by messages that else mean wrong SQL.
_LOST = re.compile(
    r"(SQL logic error: )?"
    r"(invalid fts5|no such (fts5 )?(table|column|tokenizer)|error in tokenizer|table \S+ has )"
)


class Database:
    """The only connection that writes and checkpoints. For the writing thread."""

    def __init__(self, path: Path, failure: Failure) -> None:
        self.failure = failure
        self._path = path
        self.most_log_pages = LOG_PAGES
        self._log_pages = 0  # after the last commit
        # Refuse a database, or a WAL or shm file beside it, that is a folder, a link or a pipe.
        for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
            place = path.with_name(name)
            with suppress(OSError):  # it does not exist
                if not stat.S_ISREG(place.lstat().st_mode):
                    raise damaged(place, "it is no regular file")
        try:
            self._db = open_writer(path)
            try:
                self._db.set_wal_hook(self._note_log)
                self._begin()
            except BaseException:
                self._db.close()
                raise
        except apsw.Error as error:
            raise as_memd(path, error) or damaged(path, error) from error  # also "no such table"
        except OSError as error:
            raise storage_error(str(path), error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the changes of the block as one, or roll all of them back.

        Raises:
            StorageError: the disk failed, now or before: nothing is written until the index is reopened.
        """
        self.failure.check()
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # after some errors SQLite has rolled back itself
                with suppress(MemdError):
                    self.run("ROLLBACK")
            raise
        if self._log_pages >= self.most_log_pages:
            with suppress(MemdError):  # the commit succeeded; the next one reports the failure
                self._write_back()

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return all of its rows."""
        try:
            return list(self._db.execute(statement, values))
        except apsw.Error as error:
            raise self._ours(error) from error
        except (ValueError, LookupError) as error:  # a text that is none, or cannot be unpacked
            raise damaged(self._path, error) from error

    def run_many(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of *values*."""
        try:
            self._db.executemany(statement, values)
        except apsw.Error as error:
            raise self._ours(error) from error

    @property
    def changes_made(self) -> int:
        """A counter that grows with every row written."""
        return self._db.total_changes()

    def get(self, key: str) -> Any:
        """Return a value of the meta table, None if the key does not exist."""
        found = self.run("SELECT value FROM meta WHERE key = ?", (key,))
        return found[0][0] if found else None

    def number(self, key: str) -> int | None:
        """Return an integer of the meta table, None if the key does not exist."""
        found = self.get(key)
        if found is None or type(found) is int:
            return found
        raise damaged(self._path, f"{key} is {type(found).__name__}")

    def set(self, key: str, value: int | str | bytes | None) -> None:
        """Set a value of the meta table; None removes it. Inside a transaction."""
        if value is None:
            self.run("DELETE FROM meta WHERE key = ?", (key,))
            return
        self.run("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def store(self, key: str, value: int | str | None) -> None:
        """Set a value of the meta table in a transaction of its own."""
        with self.transaction():
            self.set(key, value)

    def count_generation_up(self, *, is_seen: bool = True) -> None:
        """Increment the generation, inside a transaction: readers must use another snapshot.

        *is_seen*: agents see what is committed.
        """
        generation = (self.number("generation") or 0) + 1
        self.set("generation", generation)
        if is_seen:
            self.set(SEEN, generation)

    def is_loose(self) -> bool:
        """Return whether many pages are unused."""
        [[free], [pages]] = self.run("PRAGMA freelist_count") + self.run("PRAGMA page_count")
        return bool(free > max(LOOSE_PAGES, LOOSE_SHARE * pages))

    def give_back(self) -> bool:
        """Give some unused pages back to the file system; return False when none is left."""
        with self.transaction():
            self.run(f"PRAGMA incremental_vacuum({GIVEN_PAGES})")
        return self.run("PRAGMA freelist_count") != [(0,)]

    def checkpoint(self) -> bool:
        """Checkpoint as far as readers allow; return True when the log is empty."""
        self.failure.check()
        if not self._write_back():
            return False
        self._db.set_busy_timeout(0)
        try:  # truncate it, unless a reader uses it
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        except apsw.Error as error:
            raise self._ours(error) from error
        finally:
            self._db.set_busy_timeout(BUSY_TIMEOUT_MS)
        return True

    def close(self) -> None:
        """Checkpoint, mark the index as cleanly closed, and close the database."""
        try:
            if self.failure.error is None:
                with suppress(NoSpaceError):
                    self.store("open", None)
                    self.checkpoint()
        finally:
            self._db.close()

    def _note_log(self, _database: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _write_back(self) -> bool:
        """Checkpoint the log; return True when all of it is in the database. Raises as the disk fails."""
        try:
            in_log, written = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            raise self._ours(error) from error
        return written >= in_log

    @property
    def _place(self) -> str:
        """The workspace's key: the folder's name up to a dot, since the rest changes with a rename."""
        return self._path.parent.name.partition(".")[0]

    def _begin(self) -> None:
        version = self._db.pragma("user_version")
        if version == 0:
            with self.transaction():
                self.run(re.sub(" +--.*", "", SCHEMA))  # SQLite would keep the comments
                for statement in chain.from_iterable(map(full_text, FULL_TEXT)):
                    self.run(statement)
                self.set("generation", 0)
                self.set("place", self._place)
                self.run(f"PRAGMA user_version = {SCHEMA_VERSION}")
            fsio.sync_folder(self._path.parent)
        elif version != SCHEMA_VERSION:
            raise SchemaError(
                f"{self._path} has tables of version {version}, not {SCHEMA_VERSION}: it is built anew"
            )
        if self.get("place") != self._place:
            raise IndexDamagedError(f"{self._path} is the index of another workspace: it is built anew")
        if self.get("open") is not None:
            for table in FULL_TEXT:  # checks that their settings exist: no other step of a start reads them
                self.run(f"SELECT rowid FROM {table} LIMIT 1")
            for table in LOOKED_THROUGH:
                for [finding] in self.run(f"PRAGMA quick_check('{table}')"):
                    if finding != "ok":
                        raise damaged(self._path, finding)
        with suppress(NoSpaceError):  # a full disk must not prevent searches
            with self.transaction():
                self.set("open", 1)
                for table in FULL_TEXT:  # leftovers of an interrupted repair
                    self.run(f"DROP TABLE IF EXISTS {table}_anew")
            self.checkpoint()  # into the database file itself, since the log may get lost

    def _ours(self, error: apsw.Error) -> MemdError | apsw.Error:
        translated_error = as_memd(self._path, error)
        if isinstance(translated_error, StorageError) and isinstance(error, _DEVICE):
            return self.failure.keep(translated_error)
        return translated_error or error


def open_reader(path: Path) -> apsw.Connection:
    """Open the database of an open index read-only, with the fts5vocab tables.

    Raises:
        IndexDamagedError: it was deleted meanwhile.
    """
    if not path.exists():
        raise damaged(path, "it was deleted")
    database = apsw.Connection(f"file:{_uri(path)}?mode=ro", flags=READ_ONLY)
    database.set_busy_timeout(BUSY_TIMEOUT_MS)
    for statement in (WORD_POSTINGS, TERMS, TRIGRAM_POSTINGS):
        database.execute(statement)
    _add_views(database)
    database.execute("PRAGMA query_only = 1")
    return database


def open_writer(path: Path) -> apsw.Connection:
    """Open the database for the writing connection; create it if it does not exist."""
    # 0600 before SQLite opens it: the log and the shared memory inherit the mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    database = apsw.Connection(str(path))
    database.set_busy_timeout(BUSY_TIMEOUT_MS)
    database.pragma("page_size", PAGE_BYTES)
    if not database.pragma("page_count"):  # an index that is there would be written to
        database.pragma("auto_vacuum", "incremental")
    database.pragma("journal_mode", "wal")
    # FULL: an acknowledged commit survives a power cut (0.4 ms each on ext4).
    database.pragma("synchronous", "full")
    database.pragma("fullfsync", 1)  # macOS: fsync alone does not reach the disk
    database.pragma("checkpoint_fullfsync", 1)
    database.pragma("journal_size_limit", JOURNAL_LIMIT_BYTES)
    database.pragma("secure_delete", 1)
    database.pragma("foreign_keys", 1)
    _add_views(database)
    return database


def _add_views(database: apsw.Connection) -> None:
    database.create_scalar_function("unpacked", part_of, 3, deterministic=True)
    database.execute(VIEWS)


def follow_folder(path: Path) -> None:
    """Write the name of its folder, which was renamed, into a database that nobody has open.

    Raises:
        IndexDamagedError: it cannot be written.
    """
    try:
        with closing(open_writer(path)) as database:
            place = path.parent.name.partition(".")[0]
            database.execute("UPDATE meta SET value = ? WHERE key = 'place'", (place,))
    except apsw.Error as error:
        raise damaged(path, error) from error


@contextmanager
def open_other(path: Path) -> Iterator[apsw.Connection]:
    """Open the database of an unused index read-only, whatever its schema.

    Raises:
        IndexDamagedError: it is not a database, or lacks a table or column that a query names.
    """
    try:
        with closing(apsw.Connection(f"file:{_uri(path)}?mode=ro", flags=READ_ONLY)) as database:
            yield database
    except apsw.Error as error:
        raise damaged(path, error) from error


def open_scratch() -> apsw.Connection:
    """Open empty full-text tables in a temporary database that is deleted with the connection."""
    database = apsw.Connection("")
    made = chain.from_iterable(map(full_text, FULL_TEXT))
    for statement in (*made, WORD_POSTINGS, TRIGRAM_POSTINGS):
        database.execute(statement)
    return database


def full_text(table: str, name: str = "") -> list[str]:
    """Return the statements that create a full-text *table*, or one like it called *name*."""
    name = name or table
    settings = f"content='', contentless_delete=1, {FULL_TEXT[table]}"
    return [
        f"CREATE VIRTUAL TABLE {name} USING fts5 (text, {settings})",
        # Not within the commit that deletes: with a tenth of 100,000 chunks deleted, one commit took 9 s.
        # Compaction merges instead, in slices.
        f"INSERT INTO {name} ({name}, rank) VALUES ('deletemerge', 0)",
    ]


def terms_of(database: apsw.Connection, *, of_query: bool) -> Terms:
    """Return the function that splits a prepared text (a query or a chunk) into terms as FTS5 does."""
    reason = apsw.FTS5_TOKENIZE_QUERY if of_query else apsw.FTS5_TOKENIZE_DOCUMENT
    tokenize = database.fts5_tokenizer(WORDS_TOKENIZER[0], list(WORDS_TOKENIZER[1:]))

    def terms(prepared: str) -> list[str]:
        found = tokenize(prepared.encode(), reason, None, include_offsets=False, include_colocated=False)
        return list(cast("Iterable[str]", found))

    return terms


def sqlite_version() -> str:
    """Return the version of the linked SQLite."""
    return apsw.sqlite_lib_version()


@contextmanager
def translated(path: Path | str) -> Iterator[None]:
    """Translate SQLite's errors into memd's."""
    try:
        yield
    except apsw.Error as error:
        translated_error = as_memd(path, error)
        if translated_error is None:
            raise
        raise translated_error from error


@contextmanager
def decoded(path: Path) -> Iterator[None]:
    """Translate SQLite's errors into memd's, and errors from corrupt values into IndexDamagedError.

    Only for reading, around a few lines: elsewhere a ValueError is a bug in memd.
    """
    with translated(path):
        try:
            yield
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise damaged(path, error) from error


def as_memd(path: Path | str, error: apsw.Error) -> MemdError | None:
    """Return memd's error for one of SQLite; None if it can only be a bug in memd."""
    # SQLite does not say why it cannot create its log, and errno has changed by now.
    if isinstance(error, apsw.FullError) or (
        isinstance(error, apsw.CantOpenError) and fsio.lacks_inodes(path)
    ):
        return NoSpaceError(f"{path}: no space left on the device; what was indexed still answers")
    if isinstance(error, _DAMAGE) or (isinstance(error, apsw.SQLError) and _LOST.match(str(error))):
        return damaged(path, error)
    if isinstance(error, apsw.InterruptError):
        return DeadlineError("the search took longer than its deadline; ask for less")
    if isinstance(error, apsw.ConnectionClosedError):  # a waiting caller may come after the close
        return IndexClosedError(f"{path} is being reopened: ask again")
    if isinstance(error, (apsw.BusyError, *_DEVICE)):
        is_busy = isinstance(error, apsw.BusyError)
        return StorageError(f"{path}: {'another process holds its lock: ' if is_busy else ''}{error}")
    return None


def damaged(path: Path | str, what: object) -> IndexDamagedError:
    """Return the error for a damaged file."""
    return IndexDamagedError(f"{path} is damaged: {what}. It is rebuilt: memctl index --rebuild")


def _uri(path: Path) -> str:
    return "".join(f"%{byte:02x}" if byte in b"?#%" else chr(byte) for byte in os.fsencode(path))

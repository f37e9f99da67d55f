"""The making of the postings file: term after term out of FTS5, a slice at a time, by its own reader.

No transaction lasts longer than a slice: what stands under the ids that are covered never changes, only
leaves, and what has left the columns of a snapshot mask. What an older file knows is copied from it, so that
only the chunks that came since are looked up.

The database names the file. So it changes in one commit, and what a crash or an exchanged database leaves in
the folder belongs to nothing. A file that is not as it was written is dropped, and made again when there is
time.
"""

import secrets
import time
from array import array
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from zlib import crc32

import structlog

from memd import analysis, fsio
from memd.errors import NoSpaceError
from memd.index.columns import HAS_NUMPY, mask_of_ids
from memd.index.derived_file import Making
from memd.index.postings import (
    ALIGNED,
    DATA_AT,
    ENTRY,
    FILE_NAME,
    DamagedPostingsError,
    Inverted,
    Part,
    PostingsHeader,
    checksum,
    encoded,
    file_name,
    header_of,
    joined,
    key_of,
    only,
    up_to,
)
from memd.index.snapshot import Snapshot, View
from memd.index.writer import POSTINGS_FILE, Writer

# In so many chunks a term stands that is in the file. FTS5 tells of one in 256 chunks within 0.2 ms; of
# 220,000 terms in 100,000 chunks 5,500 are left, with two thirds of the postings.
MIN_DOCUMENTS = 256
TERMS_AT_ONCE = 2_000  # counted by one statement; FTS5 reads all of their places for it, 0.1 s of a million
CHUNKS_AT_ONCE = 50_000  # ids listed by one statement
# Written between two syncs: a commit of a save waits for what is being synced just then, some 20 ms.
SYNCED_BYTES = 16 * 1024 * 1024

# The ids of FTS5's own chunks: a table of 12 bytes each, where that of the chunks has their text.
LISTED = """
    SELECT group_concat(id) FROM (SELECT id FROM words_docsize WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)
"""
COUNTED = "SELECT term, doc FROM temp.terms WHERE term > ? LIMIT ?"

Piece = Callable[[View], bool]  # does a little; True when nothing of its kind is left
Term = tuple[str, bool]


class PostingsBuild(Making):
    """A file of postings that is being made."""

    def __init__(self, folder: Path, view_apart: Callable[[], AbstractContextManager[View]]) -> None:
        self.name = secrets.token_hex(8)
        super().__init__(folder / file_name(self.name))
        self._view_apart = view_apart
        self._old: Inverted | None = None
        self._last = 0
        self._after = 0  # the last id that was listed
        self._ids = array("q")
        self._there = mask_of_ids([], 0)  # which ids have a chunk
        self._chunks = 0
        self._term = ""  # the last that was counted
        self._beginnings: dict[str, int] = {}  # character of a spaceless script → documents of its terms
        self._terms: list[Term] = []  # that are to be written, the next one last
        self._size = self._synced = DATA_AT
        self._keys = bytearray()
        self._ends = array("I")
        self._entries = bytearray()
        self._pieces: list[Piece] = [self._begin, self._list, self._count, self._write, self._finish]

    @property
    def _is_done(self) -> bool:
        return not self._pieces

    def _go_on(self, stop: float) -> None:
        with self._view_apart() as view:
            while self._pieces and not self._given_up:
                if self._pieces[0](view):
                    self._pieces.pop(0)
                if time.monotonic() > stop:
                    break

    def _begin(self, view: View) -> bool:
        postings = view.snapshot.postings
        self._old = postings.file
        self._last = postings.newest
        self._descriptor = fsio.create(self.path)
        return True

    def _list(self, view: View) -> bool:
        """List which chunks there are."""
        [[found]] = view.reader.each(LISTED, (self._after, self._last, CHUNKS_AT_ONCE))
        listed = [int(number) for number in str(found or "").split(",") if number]
        self._ids.extend(listed)
        if listed:
            self._after = listed[-1]
            return False
        self._there = mask_of_ids(self._ids, self._last + 1)
        self._chunks = len(self._ids)
        del self._ids
        return True

    def _count(self, view: View) -> bool:
        """Find the terms that are frequent enough."""
        found = list(view.reader.each(COUNTED, (self._term, TERMS_AT_ONCE)))
        for term, documents in found:
            if documents >= MIN_DOCUMENTS:
                self._terms.append((term, False))
            if analysis.is_spaceless(term[:1]):
                self._beginnings[term[0]] = self._beginnings.get(term[0], 0) + documents
        if found:
            self._term = found[-1][0]
            return False
        self._terms += [(one, True) for one, count in self._beginnings.items() if count >= MIN_DOCUMENTS]
        self._terms.sort(key=key_of, reverse=True)
        return True

    def _write(self, view: View) -> bool:
        """Write the postings of one term."""
        if not self._terms:
            return True
        term = self._terms.pop()
        part = self._part(view, term)
        is_dense, block = encoded(part, self._last + 1)
        fsio.write_at(self._descriptor, block, self._size)
        key = key_of(term)
        self._keys += key
        self._ends.append(len(self._keys))
        self._entries += ENTRY.pack(
            self._size, part.size, is_dense, checksum(key, part.size, is_dense, block)
        )
        self._size = _aligned(self._size + len(block))
        if self._size - self._synced > SYNCED_BYTES:
            fsio.sync(self._descriptor)
            self._synced = self._size
        return False

    def _part(self, view: View, term: Term) -> Part:
        # Anew: what the disk has changed since would get a checksum of its own.
        stored = self._old.find(term, anew=True) if self._old is not None else None
        text, is_beginning = term
        if self._old is None or stored is None:
            return up_to(view.reader.counted(text, prefix=is_beginning), self._last)
        newer = view.reader.counted(text, prefix=is_beginning, after=self._old.last)
        return joined(only(stored.part, self._there), up_to(newer, self._last))

    def _finish(self, _: View) -> bool:
        keys_at = self._size
        ends_at = _aligned(keys_at + len(self._keys))
        ends = self._ends.tobytes()
        contents = bytes(self._keys).ljust(ends_at - keys_at, b"\0") + ends + bytes(self._entries)
        contents += bytes(ALIGNED)  # a file without terms reaches beyond its header, too
        facts = PostingsHeader(
            self.name, self._last, self._chunks, len(self._ends),
            keys_at, ends_at, ends_at + len(ends), crc32(contents),
        )  # fmt: skip
        fsio.write_at(self._descriptor, contents, keys_at)
        fsio.write_at(self._descriptor, header_of(facts), 0)
        fsio.sync(self._descriptor)
        fsio.sync_folder(self.path.parent)
        self._close()
        return True


def _aligned(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


log = structlog.get_logger()

# In smaller indexes FTS5 tells of any term within 10 ms, and once for all queries.
MIN_CHUNKS = 20_000
# Chunks beyond the file, as a share of those in it. FTS5 tells of them when a word is first asked for after
# a start, at 0.5 µs for each that it stands in. A new file costs a look at every term and its copy.
TAIL_SHARE = 1 / 20
BUSY_TAIL_SHARE = 1 / 4  # the same while there is other work: in a first import it is made ten times
HOLDS_PURGED = "postings_hold_purged"  # in meta: the file knows chunks that were purged since


class InvertedKeeper:
    """The file of one index. For the writing thread; `file` and `owns` are for any.

    What *publish* does with another file is seen by the next query.
    """

    def __init__(self, folder: Path, writer: Writer, publish: Callable[[Inverted | None], None]) -> None:
        self.file: Inverted | None = None
        self._folder = folder
        self._writer = writer
        self._publish = publish
        self._building: PostingsBuild | None = None
        self._purges = 0  # since it was opened
        self._begun_at = (0, 0)  # what `_state` was when the one that is being built was begun
        self._open()

    def owns(self, path: Path) -> bool:
        """Tell whether a file of the folder is the one that counts, or the one that is being made."""
        building, file = self._building, self.file
        return path.name in {
            building.path.name if building is not None else "",
            file_name(file.name) if file is not None else "",
        }

    def is_due(self, now: Snapshot, *, is_busy: bool) -> bool:
        """Tell whether a file should be made; *is_busy*: there is other work."""
        file = self.file
        if self.holds_purged:
            return True
        if now.columns.count < MIN_CHUNKS or not HAS_NUMPY:
            return False
        if file is None or file.is_damaged:
            return True
        return now.postings.newest - file.last > (BUSY_TAIL_SHARE if is_busy else TAIL_SHARE) * file.last

    @property
    def holds_purged(self) -> bool:
        """Whether the file knows chunks that were purged since it was made."""
        return self.file is not None and self._writer.number(HOLDS_PURGED) is not None

    def note_purged(self) -> None:
        """Note, inside a transaction, that chunks were purged."""
        self._purges += 1
        if self.file is not None:
            self._writer.set(HOLDS_PURGED, 1)

    def note_late(self, first: int) -> None:
        """Note, inside a transaction, that chunks with ids from *first* on are live only now.

        A file that was made meanwhile, or is being made, lacks them; after the commit the caller has it
        looked at.
        """
        self._purges += 1
        if self.file is not None and self.file.last >= first:
            self._writer.set(POSTINGS_FILE, None)
            self._writer.set(HOLDS_PURGED, None)

    def begin(self, view_apart: Callable[[], AbstractContextManager[View]]) -> PostingsBuild:
        """Begin to make a file; `adopt` follows when it is whole. Another one that was begun is given up."""
        self.close()
        self._building = PostingsBuild(self._folder, view_apart)
        self._begun_at = self._state
        return self._building

    def adopt(self, building: PostingsBuild) -> bool:
        """Let a file that is whole take the place of the one before; False where it is not true any more."""
        is_true = building is self._building and building.is_whole and self._begun_at == self._state
        made = self._opened(building.name) if is_true else None
        if made is None:
            building.abandon()
            return False
        try:
            with self._writer.transaction():
                self._writer.set(POSTINGS_FILE, made.name)
                self._writer.set(HOLDS_PURGED, None)
        except BaseException:
            building.abandon()
            raise
        self._building = None
        self._change(made)
        return True

    def drop(self) -> None:
        """Do without a file."""
        with self._writer.transaction():
            self._writer.set(POSTINGS_FILE, None)
            self._writer.set(HOLDS_PURGED, None)
        self._change(None)

    def look(self) -> None:
        """Let go of a file that the database does not name any more; the caller publishes."""
        if self.file is not None and self._writer.get(POSTINGS_FILE) != self.file.name:
            self._remove(self.file.name)
            self.file = None

    def close(self) -> None:
        """Give up what is being made; the file that is there stays."""
        if self._building is not None:
            self._building.abandon()

    @property
    def _state(self) -> tuple[int, int]:
        """What is another one when a file that was begun before is not true any more."""
        return self._purges, self._writer.refilled

    def _change(self, file: Inverted | None) -> None:
        old, self.file = self.file, file
        self._publish(file)
        if old is not None:
            self._remove(old.name)

    def _open(self) -> None:
        name = self._writer.get(POSTINGS_FILE)
        if name is not None:
            # Without numpy nobody could make it anew after a purge, so it is not kept either.
            self.file = self._opened(str(name)) if HAS_NUMPY else None
            if self.file is None:
                with suppress(NoSpaceError), self._writer.transaction():
                    self._writer.set(POSTINGS_FILE, None)
        for path in self._folder.iterdir():
            if FILE_NAME.fullmatch(path.name) and not self.owns(path):
                log.warning("stray_postings_removed")
                with suppress(OSError):  # a folder of that name is none of ours
                    fsio.remove(path)

    def _opened(self, name: str) -> Inverted | None:
        if not FILE_NAME.fullmatch(file_name(name)):  # a bit that flipped
            return None
        try:
            return Inverted(self._folder / file_name(name), name)
        except FileNotFoundError:
            log.warning("postings_missing")
        except (DamagedPostingsError, OSError) as error:
            log.warning("postings_not_usable", kind=type(error).__name__)
        return None

    def _remove(self, name: str) -> None:
        with suppress(OSError):  # a name that stays is removed at the next start
            fsio.remove(self._folder / file_name(name))

"""The indexer: reads changed files, skips unchanged ones, prepares their rows and commits them.

Reading and parsing run in any thread, reads and changes of the index in the writing thread. A path may be
handled again between two steps: a reading that is older than the last committed one is dropped. Keyword
search sees a commit at once; vectors follow in `embed`, computed elsewhere by the caller.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from memd.entries.secrets import shapes_version
from memd.errors import IndexClosedError, InterruptedParseError, MemdError
from memd.fsio import RACY_NS
from memd.index.index import Index
from memd.index.source_rows import NewSource, prepare
from memd.index.transaction import STAGED_CHUNKS, Staged, Transaction
from memd.records import ChunkLimits, FileStamp, Skipped, SourceText, Tokenizer
from memd.sources.scan import Rules, changes, read_source, steps

log = structlog.get_logger()
PARSING = "parsing."  # how the names of the files of `Suspects` begin
# A commit is a point where a query sees more and a newer save may overtake; each costs an fsync.
COMMIT_EVERY_S = 0.1
SLICE_S = 0.05  # of a comparison; a save that is made meanwhile waits for the slice
RACY = FileStamp(0, 0, 0, 0)  # equals no file's stamp, so the next scan reads it once more
CHUNKER = 22  # counts up when the same text would be cut or prepared in another way
# A longer note, or one with more lines, may delay a save behind it too long: the worst case is 50 ms for this
# many lines, half a second for 32 kB of "-". Nearly all notes are smaller.
TAME_CHARS = 32_768
TAME_LINES = 1_000
# Paths whose last committed reading is remembered: more than are committed while one note is parsed.
ORDERS_KEPT = 50_000

Prepare = Callable[[SourceText, FileStamp], NewSource]


@dataclass(frozen=True, slots=True)
class Compared:
    """How a folder differs from its index."""

    differing: list[str]  # new, changed or gone
    gone: list[str]  # those that are indexed but do not exist
    skipped: list[Skipped]
    sources: int  # found
    known: int  # live in the index


class FolderComparison:
    """The comparison of a folder with the index, in slices, so that saves need not wait long."""

    def __init__(
        self, index: Index, root: Path, rules: Rules, folder: str, no_texts: Mapping[str, Skipped]
    ) -> None:
        self._index = index
        self._folder = folder
        self._no_texts = no_texts
        self._steps = steps(root, rules, folder)
        self._found: dict[str, FileStamp] = {}
        self._skipped: list[Skipped] = []

    def step(self, budget_s: float = SLICE_S) -> Compared | None:
        """Work for about *budget_s*; return the differences when done, else None. For the writing thread."""
        return self.compared() if self.walk(budget_s) else None

    def walk(self, budget_s: float = SLICE_S) -> bool:
        """List the folder for about *budget_s*; return whether it is through. Reads no file contents.

        A source that was saved and indexed between two slices may be named as gone: like any path, that is
        a hint.
        """
        stop = time.monotonic() + budget_s
        for entry in self._steps:
            if isinstance(entry, Skipped):
                self._skipped.append(entry)
            elif entry is not None:
                self._found[entry[0]] = entry[1]
            if time.monotonic() > stop:
                return False
        return True

    def compared(self) -> Compared:
        """Return the differences of what was found. For the writing thread."""
        found = self._found
        known = self._index.writer.paths(self._folder)
        gone = sorted(known.keys() - found.keys())
        same = {path: file for path, file in self._no_texts.items() if found.get(path) == file.stamp}
        differing = [path for path in changes(known, found) if path not in same]
        return Compared(differing, gone, [*self._skipped, *same.values()], len(found), len(known))


@dataclass(slots=True)
class Applied:
    """The result of one call."""

    indexed: list[str] = field(default_factory=list)  # new or changed text
    removed: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # neither a source nor in the index
    skipped: list[Skipped] = field(default_factory=list)
    unsettled: list[str] = field(default_factory=list)  # still being written: read again later
    interrupted: list[str] = field(default_factory=list)  # part of skipped: to be tried again later
    put_off: list[str] = field(default_factory=list)  # large: to be read again when there is time
    warned: dict[str, tuple[str, ...]] = field(default_factory=dict)  # indexed path → its warnings
    handled: int = 0  # number of paths handled, from the start of the list

    def add(self, other: "Applied") -> None:
        """Add the result of a call with the paths that follow."""
        for name in ("indexed", "removed", "absent", "skipped", "unsettled", "interrupted", "put_off"):
            getattr(self, name).extend(getattr(other, name))
        self.warned.update(other.warned)
        self.handled += other.handled


@dataclass(slots=True)
class Reading:
    """One path on its way into the index."""

    path: str
    order: int  # of two readings of a path the higher one is newer
    now_ns: int  # just before it was read
    found: SourceText | Skipped | None = None
    put_off: bool = False  # not tame: skipped for now
    wanted: bool = False  # it must be parsed
    prepared: NewSource | None = None
    staged: Staged | None = None  # set for a source with many chunks
    failed: str = ""  # the step and the exception at which it failed
    interrupted: bool = False  # failed for a reason outside of the note


class Indexer:
    """Brings the sources of one workspace into its index."""

    def __init__(self, index: Index, root: Path, *, tokenizer: Tokenizer, limits: ChunkLimits) -> None:
        self._index = index
        self._root = root
        self.tokenizer = tokenizer
        self.limits = limits
        self.suspects: frozenset[str] = frozenset()  # paths that may have crashed the daemon: never tame
        self.in_hand = Suspects(index.folder)
        self._rules: Rules | None = None  # of the last comparison; before it every path is accepted
        self._orders = itertools.count(1)
        self._newest: dict[str, int] = {}  # path → order of the last committed reading
        self._no_texts: dict[str, Skipped] = {}  # path → a file that no scan need read again

    def begin(self) -> None:
        """Prepare the first scan; all sources are cut again if the chunker, its limits or secrets changed."""
        self.suspects = self.in_hand.left()
        writer = self._index.writer
        limits = self.limits
        cut_by = f"{CHUNKER}:{limits.words}:{limits.overlap_words}:{limits.max_tokens}:{shapes_version()}"
        if writer.get("chunker") != cut_by:
            with writer.transaction():
                writer.forget_stamps()
                writer.set("chunker", cut_by)

    def comparison(self, rules: Rules, folder: str = "") -> "FolderComparison":
        """Return the comparison of the root, or a *folder* in it ("a/b/"), with the index.

        From now on `apply` takes what *rules* select.
        """
        self._rules = rules
        return FolderComparison(self._index, self._root, rules, folder, self._no_texts)

    def apply(
        self, paths: list[str], *, budget_s: float = COMMIT_EVERY_S, at_s: int | None = None
    ) -> Applied:
        """Do all steps in the calling thread, with as many of *paths* as fit into the budget, at least one.

        Paths are hints: the files on the disk count. A missing file is gone since *at_s*, in unix seconds; by
        default since now.
        """
        stop = time.monotonic() + budget_s
        readings = self.read(paths, budget_s=budget_s)
        self.sift(readings)
        self.prepare(readings, stop=stop)
        while not self.stage(readings):
            pass
        return self.commit(readings, at_s=at_s)

    def read(
        self, paths: list[str], *, budget_s: float = COMMIT_EVERY_S, large_too: bool = True
    ) -> list[Reading]:
        """Read as many of *paths* as fit into the budget, at least one. For any thread.

        Notes that are not tame are put off, unless *large_too*.
        """
        stop = time.monotonic() + budget_s
        readings: list[Reading] = []
        for path in paths:
            now_ns = time.time_ns()
            reading = Reading(path, next(self._orders), now_ns)
            with self._alone(reading, "reading"):
                if self._is_selected(path):
                    reading.found = read_source(self._root, path, now_ns=now_ns)
            if not large_too and isinstance(reading.found, SourceText):
                text = reading.found.text
                is_tame = len(text) <= TAME_CHARS and text.count("\n") <= TAME_LINES
                reading.put_off = path in self.suspects or not is_tame
            readings.append(reading)
            if time.monotonic() > stop:
                break
        return readings

    def sift(self, readings: list[Reading]) -> None:
        """Mark the readings with bytes unknown to the index: they must be parsed. For the writing thread."""
        for reading in readings:
            found = reading.found
            if isinstance(found, SourceText) and not reading.put_off:
                with self._alone(reading, "comparing"):
                    known = self._index.writer.stamp(reading.path)
                    reading.wanted = known is None or known[1] != found.hash

    def prepare(
        self, readings: list[Reading], *, stop: float | None = None, parse: Prepare | None = None
    ) -> None:
        """Parse the marked readings for which there is time, at least one. For any thread.

        The rest is removed from the list as not handled. *stop*: in monotonic seconds; None: COMMIT_EVERY_S
        from now. *parse* parses a note elsewhere.
        """
        stop = time.monotonic() + COMMIT_EVERY_S if stop is None else stop
        for number, reading in enumerate(readings):
            if number and time.monotonic() > stop:
                del readings[number:]
                return
            if not reading.wanted or not isinstance(reading.found, SourceText):
                continue
            try:
                found, stamp = reading.found, _kept_stamp(reading, reading.found.stamp)
                reading.prepared = (
                    parse(found, stamp)
                    if parse is not None
                    else prepare(found, stamp, tokenizer=self.tokenizer, limits=self.limits)
                )
            except IndexClosedError:  # the daemon stops
                raise
            except InterruptedParseError:
                reading.failed, reading.interrupted = "parsing: it was interrupted", True
            except Exception as error:  # one note that fails must not block all others
                log.exception("note_failed")
                reading.failed = f"parsing: {type(error).__name__}"

    def stage(self, readings: list[Reading], *, budget_s: float = SLICE_S) -> bool:
        """Store a slice of the chunks of large sources; return True when done. For the writing thread."""
        for reading in readings:
            new, staged = reading.prepared, reading.staged
            if new is None or len(new.chunks) <= STAGED_CHUNKS:
                continue
            if staged is not None and staged.stored == len(new.chunks):
                continue
            done = True
            try:
                with self._alone(reading, "storing its chunks"):
                    reading.staged, done = self._index.stage(new, staged, budget_s)
            except BaseException:
                self._let_go(readings)
                raise
            if reading.failed:
                self._let_go([reading])
                reading.prepared = reading.staged = None
            if not done:
                return False
        return True

    def commit(self, readings: list[Reading], *, at_s: int | None = None) -> Applied:
        """Apply the readings to the index in one commit. For the writing thread.

        If it fails for a reason that no `MemdError` names, the fault is a file's until shown otherwise: each
        is committed on its own then, and one that fails again is set aside.
        """
        try:
            return self._committed(readings, at_s)
        except MemdError:
            raise
        except Exception:
            log.exception("commit_failed", files=len(readings))
        done = Applied()
        for reading in readings:
            reading.staged = None  # let go with the others
            with self._alone(reading, "storing"):
                done.add(self._committed([reading], at_s))
            if reading.failed and reading.path not in {file.path for file in done.skipped}:
                done.handled += 1
                done.skipped.append(Skipped(reading.path, "failed", reading.failed))
        return done

    @contextmanager
    def _alone(self, reading: Reading, step: str) -> Iterator[None]:
        """Mark a reading as failed where a step with it raises what nobody expects: others must go on."""
        try:
            yield
        except MemdError:
            raise
        except Exception as error:
            log.exception("note_failed")
            reading.failed = reading.failed or f"{step}: {type(error).__name__}"

    def _committed(self, readings: list[Reading], at_s: int | None) -> Applied:
        done = Applied()
        gone_since_s = int(time.time()) if at_s is None else at_s
        try:
            with self._index.changes() as changes:
                for reading in readings:
                    done.handled += 1
                    if reading.put_off:
                        done.put_off.append(reading.path)
                    elif reading.failed and reading.found is None:  # reading it raised: it may be there
                        done.skipped.append(Skipped(reading.path, "failed", reading.failed))
                    elif self._newest.get(reading.path, 0) < reading.order:
                        self._apply_one(reading, changes, done, gone_since_s)
        finally:
            self._let_go(readings)
        for reading in readings:
            if not reading.put_off:
                self._newest[reading.path] = max(reading.order, self._newest.get(reading.path, 0))
        while len(self._newest) > ORDERS_KEPT:
            del self._newest[next(iter(self._newest))]
        return done

    def embed(self, vectors: Mapping[bytes, bytes], *, model_id: str) -> None:
        """Store vectors by the hash of their text."""
        with self._index.changes() as changes:
            changes.embed(vectors, model_id=model_id)

    def _apply_one(self, reading: Reading, changes: Transaction, done: Applied, gone_since_s: int) -> None:
        path = reading.path
        # By the rules of the newest comparison, which may have begun after the reading.
        found = reading.found if self._is_selected(path) else None
        self._no_texts.pop(path, None)
        if isinstance(found, Skipped) and found.path != path:  # no text: it can't be in the index
            done.skipped.append(found)
            return
        if not isinstance(found, SourceText):
            if isinstance(found, Skipped):
                done.skipped.append(found)
                if found.stamp and _kept_stamp(reading, found.stamp) is not RACY:
                    self._no_texts[path] = found
            was_live = changes.remove(path, gone_since_s)
            (done.removed if was_live else done.absent).append(path)
            return
        stamp = _kept_stamp(reading, found.stamp)
        known = self._index.writer.stamp(path)
        if known is not None and known[1] == found.hash:
            if not known[2]:
                changes.restore(path, stamp)
                done.indexed.append(path)
            elif known[0] != stamp:
                self._index.writer.put_stamp(path, stamp)
            changes.redate(path, found.stamp)
        elif reading.prepared is not None:
            changes.put(reading.prepared, reading.staged)
            done.indexed.append(path)
            done.warned[path] = reading.prepared.warnings
        elif reading.failed:
            done.skipped.append(Skipped(path, "failed", reading.failed))
            done.interrupted += [path] if reading.interrupted else []
            return
        else:  # the bytes were known to the index in `sift`, but not any more
            done.unsettled.append(path)
            return
        if not found.settled:
            done.unsettled.append(path)

    def _let_go(self, readings: list[Reading]) -> None:
        for reading in readings:
            if reading.staged is not None:
                self._index.let_go(reading.staged)

    def _is_selected(self, path: str) -> bool:
        return self._rules is None or self._rules.selects(path)


class Suspects:
    """The paths that are being parsed, in a file of the index folder for each lane.

    The daemon writes a file before it parses and removes it after the commit. Paths found at the next start
    may have crashed the daemon. The file is not synced: it must survive a crash of the process, not a power
    cut. On a full disk only this protection is lost.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def mark(self, lane: str, paths: list[str]) -> None:
        """Record the paths about to be parsed."""
        with suppress(OSError):
            self._file(lane).write_text(json.dumps(paths), encoding="ascii")

    def clear(self, lane: str) -> None:
        """Record that parsing succeeded."""
        with suppress(OSError):
            self._file(lane).unlink(missing_ok=True)

    def clear_all(self) -> None:
        """Remove all records, when the daemon stops regularly."""
        for file in self._folder.glob(f"{PARSING}*"):
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def left(self) -> frozenset[str]:
        """Return the paths that were being parsed when the daemon last ended."""
        found: set[str] = set()
        for file in self._folder.glob(f"{PARSING}*"):
            with suppress(OSError, ValueError):
                found.update(path for path in json.loads(file.read_bytes()) if isinstance(path, str))
        return frozenset(found)

    def _file(self, lane: str) -> Path:
        return self._folder / f"{PARSING}{lane}"


def _kept_stamp(reading: Reading, stamp: FileStamp) -> FileStamp:
    """Return the stamp to store: RACY if the file may change without changing its stamp."""
    racy = reading.now_ns - max(stamp.mtime_ns, stamp.ctime_ns) < RACY_NS
    return RACY if racy else stamp

"""A real daemon whose files somebody meddles with, its notes, and the right answers.

The notes never change after the beginning. So, whatever is done to the index, the answers of the healthy
daemon are the only right ones once it has settled, and before that it may not quote what no note says.
"""

import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
from daemon_process import Daemon, until
from patience import PATIENCE

from faults.site import put, tree_hash
from faults.steps import word_of
from memctl.client import RpcError, Unreachable
from memd.index import postings_table
from memd.index.index import Index

NOTES = 24
MEANINGS = ("a place to sleep", "mending what is broken", "water that flows")
SETTLE_S = 20.0 * PATIENCE  # of a loaded machine; usually one second
DEATHS = 1  # a mapped file that is cut short costs one restart (SIGBUS)
SCORE_STEP = 1e-3  # a text that is embedded again in other company has a score that differs by less

Hit = tuple[str, int, str, float]  # path, line, what is quoted, score
Query = tuple[str, str]  # text, mode


class Household:
    """A daemon with one workspace, whose state can be set back to how it was when all was well."""

    def __init__(self, folder: Path, *, first: int = 0, notes: int = NOTES, is_hot: bool = False) -> None:
        """Start it, learn what is right, and end it.

        Args:
            folder: empty; of the household alone.
            first: number of its first note; other numbers are other texts under the same names.
            notes: how many.
            is_hot: it is ended as by a crash, so that SQLite's log is not written back.
        """
        self.root = folder / "notes"
        self.kept = folder / "kept"  # its state when all was well
        (folder / "home").mkdir(parents=True)
        (self.root / "memory").mkdir(parents=True)
        (self.root / "memory" / "config.toml").touch()
        self.daemon = Daemon(folder / "home")
        try:
            self._begin(range(first, first + notes))
            self._end(is_hot=is_hot)
        except BaseException:
            self.daemon.close()
            raise

    @property
    def index_dir(self) -> Path:
        return self.daemon.state / next(self.kept.glob("*/index.db")).parent.name

    @property
    def matrix(self) -> Path:
        """The file of vectors, as it was called when all was well."""
        return self.index_dir / next(self.kept.glob("*/vectors.*.f32")).name

    @property
    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        while "pending_files" not in facts:
            [facts] = self.daemon.call("status")["workspaces"]
            time.sleep(0.01)
        return facts

    def answers(self) -> dict[Query, list[Hit]]:
        return {query: self.ask(query) for query in self.queries}

    def configure(self, text: str) -> None:
        (self.root / "memory" / "config.toml").write_text(text)
        self.tree = tree_hash(self.root)

    def allow(self, address: str) -> None:
        """Let workspaces ask a server there."""
        config = self.daemon.home / "config" / "memd"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(f'addresses = ["{address}"]\n')

    def launch(self) -> None:
        """Start the daemon, and do not wait for it."""
        with self.daemon.log_path.open("ab") as log:
            self.daemon.process = forked.popen(
                [sys.executable, "-m", "memd"], env=self.daemon.environment, stderr=log, stdout=log
            )

    def restore(self) -> None:
        """Have the state be what it was, with no daemon running."""
        self.kill()
        shutil.rmtree(self.daemon.state)
        shutil.copytree(self.kept, self.daemon.state)

    def kill(self) -> None:
        """End the daemon as a crash would."""
        if self.daemon.process is not None:
            self.daemon.process.kill()
            self.daemon.process.wait()

    def settle(self) -> None:
        """Wait until nothing is open any more: all found, all indexed, all embedded."""
        until(self._is_settled, SETTLE_S)

    def ask(self, query: Query) -> list[Hit]:
        """Return an answer without what changes with each building of an index."""
        text, mode = query
        hits = self.daemon.call("search", query=text, mode=mode, workspace=str(self.root), limit=5)["hits"]
        return [(hit["path"], hit["start_line"], hit["snippet"], hit["score"]) for hit in hits]

    def said_at_once(self) -> Iterator[str]:
        """Ask without waiting; yield what is quoted of a note that does not say it. An error is no answer."""
        for query in self.queries:
            try:
                hits = self.ask(query)
            except (RpcError, Unreachable):
                continue
            for path, _, quoted, _ in hits:
                if not _says(self.root / path, quoted):
                    yield f"{query} quotes {path}: {quoted!r}"

    def said_at_last(self, patience_s: float = SETTLE_S) -> Iterator[str]:
        """Wait, and yield how the answers differ from the right ones; a death by SIGBUS is forgiven once."""
        for _ in range(DEATHS + 1):
            try:
                wrong = self._differences(patience_s)
            except Unreachable as error:
                assert self.daemon.process is not None
                code = self.daemon.process.wait(SETTLE_S)
                if code == -signal.SIGBUS:
                    self.daemon.start()
                    continue
                wrong = [f"the daemon ended with {code}: {error}; {self.daemon.log()[-1000:]}"]
            yield from wrong
            return
        yield f"the daemon ended more than {DEATHS} times"

    def differs(self, query: Query) -> Iterator[str]:
        """Yield how an answer differs from the right one."""
        right = self.right[query]
        try:
            found = self.ask(query)
        except RpcError as error:
            yield f"{query}: {error}"
            return
        if [hit[:3] for hit in found] != [hit[:3] for hit in right]:
            yield f"{query} answers {found}, not {right}"
        elif any(abs(one[3] - other[3]) > SCORE_STEP for one, other in zip(found, right, strict=True)):
            yield f"{query} scores {[hit[3] for hit in found]}, not {[hit[3] for hit in right]}"

    def check(self) -> list[dict[str, Any]]:
        """Do what the daily check does; return what it found."""
        found: list[dict[str, Any]] = self.daemon.call("check", workspace=str(self.root), repair=True)[
            "findings"
        ]
        return found

    def flaws(self) -> Iterator[str]:
        """Yield everything that is wrong in the end: answers, invariants, notes."""
        yield from self.said_at_last()
        yield from (f"check: {one['kind']}: {one['text']}" for one in self.check())
        if tree_hash(self.root) != self.tree:
            yield "the notes have changed"

    def _begin(self, recipes: range) -> None:
        """Write the notes, half of them before the first scan, and ask what will be asked."""
        self._recipes = recipes
        half = len(recipes) // 2
        self._write(recipes[:half])
        self.daemon.start()
        self.daemon.add(self.root)
        self.settle()
        self.daemon.stop()  # from here on SQLite's log has less than the database
        _make_postings(next(self.daemon.state.glob("*/index.db")).parent)
        self.daemon.start()
        self._write(recipes[half:])
        self.daemon.call("sync", workspace=str(self.root))
        self.settle()
        words = [word_of(f"0.{number}") for number in recipes[:: max(len(recipes) // 8, 1)]]
        self.queries = [(word, "keyword") for word in words] + [(text, "vector") for text in MEANINGS]
        self.right = self.answers()
        assert not list(self.said_at_once())
        self.tree = tree_hash(self.root)

    def _write(self, recipes: range) -> None:
        for number in recipes:
            put(self.root / f"f{number % 3}" / f"{number % len(self._recipes)}.md", f"0.{number}")

    def _end(self, *, is_hot: bool) -> None:
        if is_hot:
            self.kill()
        else:
            self.daemon.stop()
        shutil.copytree(self.daemon.state, self.kept)

    def _is_settled(self) -> bool:
        facts = self.facts
        is_open = facts["state"] != "ready" or facts["pending_files"] or facts["pending_vectors"]
        return not is_open and facts["last_scan"] is not None and not facts["degraded"]

    def _differences(self, patience_s: float) -> list[str]:
        """Return how answers differ, after waiting for them not to."""
        stop = time.monotonic() + patience_s
        while True:
            wrong = [] if self._is_settled() else [f"it does not settle: {self.facts}"]
            wrong = wrong or [text for query in self.queries for text in self.differs(query)]
            if not wrong or time.monotonic() > stop:
                return wrong
            time.sleep(0.05)


def _make_postings(folder: Path) -> None:
    """Fill the table of postings, which only a far larger index would have, with all of its words."""
    limit, postings_table.MIN_DOCUMENTS = postings_table.MIN_DOCUMENTS, 1
    index = Index(folder)
    try:
        building = index.postings.begin()
        while not building.is_done:
            assert index.postings.put(building, building.step(1.0))
    finally:
        postings_table.MIN_DOCUMENTS = limit
        index.close()


def _says(file: Path, quoted: str) -> bool:
    """Tell whether a note has what is quoted; an ellipsis stands for anything."""
    said = " ".join(file.read_text().split()) if file.exists() else ""
    return all(" ".join(piece.split()) in said for piece in quoted.split("…"))


@contextmanager
def household(folder: Path, **options: Any) -> Iterator[Household]:
    """Have a household for a while."""
    made = Household(folder, **options)
    try:
        yield made
    finally:
        made.daemon.close()

"""Searches of the team's memory: the store, with the workspaces of this machine laid over it.

What this machine publishes is read out of its own indexes, so that its own saves are found at once. A store
that does not answer is left alone for a while; then the caller answers out of its own workspace. For any
thread.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import structlog

from memd.errors import NotFoundError, StoreError, StoreRefusedError
from memd.records import OwnModel
from memd.search.score import PreparedQuery
from memd.stores.lean import chunk_facts, joined
from memd.stores.local import LocalStore, OpenView
from memd.stores.mini_view import MiniReader
from memd.stores.outcome import Outcome
from memd.stores.store import (
    ChunkKey,
    Evidence,
    Found,
    Holders,
    Listed,
    Near,
    PublishedSource,
    PublishedWorkspace,
    ReadableStore,
    SourceKey,
    Statistics,
    Wanted,
)
from memd.stores.team_search import (
    HOP_S,
    Embed,
    StoreAnswer,
    StoreSearch,
    StoreVerdict,
    search_store,
    side_by_side,
    why_store,
)

log = structlog.get_logger()

RETRY_S: Final = 5.0  # between two tries of a store that failed
WORKSPACES_S: Final = 30.0  # how long the list of workspaces is used; arbitrary
HOPS: Final = 8  # calls that wait for the store at once; more wait for these. Arbitrary
# Candidates of each list: twice those of a search, because a store may count words of other tenants.
POOL: Final = 300

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Own:
    """A workspace of this machine that is published."""

    workspace: PublishedWorkspace
    root: str
    open_view: OpenView  # of what agents may see


class Breaker:
    """Lets one caller in RETRY_S try a store that failed; notes what each call came to."""

    def __init__(self, outcome: Outcome, clock: Callable[[], float] = time.monotonic) -> None:
        self._outcome = outcome
        self._clock = clock
        self._lock = threading.Lock()  # protects _closed_until
        self._closed_until = 0.0

    def run(self, work: Callable[[], T]) -> T:
        """Run *work*.

        Raises:
            StoreError: it failed, or something failed less than RETRY_S ago.
        """
        with self._lock:
            now = self._clock()
            if now < self._closed_until:
                raise StoreError("the team's store did not answer a moment ago: ask again in some seconds")
            is_trial = self._closed_until > 0
            if is_trial:
                self._closed_until = now + RETRY_S
        try:
            found = work()
        except StoreError as error:
            self._outcome.note_failure(error)
            is_there = isinstance(error, StoreRefusedError)
            self._close_until(0.0 if is_there else self._clock() + RETRY_S)
            raise
        except Exception:  # as a deadline of the caller: nothing is known of the store, so the next one tries
            if is_trial:
                self._close_until(now)
            raise
        self._outcome.note_answer()
        self._close_until(0.0)
        return found

    def _close_until(self, moment: float) -> None:
        with self._lock:
            self._closed_until = moment


class TeamReader:
    """The reading half of a daemon's connection with its team."""

    def __init__(self, store: ReadableStore, own: Callable[[], Sequence[Own]], outcome: Outcome) -> None:
        """Ask nothing yet.

        Args:
            store: of the team.
            own: returns the published workspaces of this machine that are open.
            outcome: where it notes what the store answers.
        """
        self._store = store
        self._own = own
        self._breaker = Breaker(outcome)
        # Calls of a search, and what these wait for at the store: never for a thread of their own kind.
        self._calls = ThreadPoolExecutor(HOPS, thread_name_prefix="memd-team")
        self._hops = ThreadPoolExecutor(HOPS, thread_name_prefix="memd-hop")
        self._listed: tuple[float, tuple[PublishedWorkspace, ...]] = (-WORKSPACES_S, ())

    def search(
        self, plain: PreparedQuery, embed: Embed, model: OwnModel, known: Sequence[str] = ()
    ) -> "TeamAnswer":
        """Answer a query.

        Args:
            plain: the query without a vector.
            embed: computes its vector.
            model: of the caller; if it is not the store's, only words are searched.
            known: keys of passages that must not be in the answer.

        Raises:
            StoreError: the store did not answer in time, or refused.
            DeadlineError: the caller's deadline passed.
        """

        def asked() -> TeamAnswer:
            opened = self._opened(model)
            return TeamAnswer(search_store(opened.team, plain, embed, known=known), opened)

        return self._breaker.run(asked)

    def why(
        self,
        plain: PreparedQuery,
        embed: Embed,
        model: OwnModel,
        *,
        is_home: Callable[[PublishedWorkspace, str], bool],
        path: str,
        line: int | None,
    ) -> "TeamVerdict":
        """Follow a note, or its chunks at one line, through the stages of a search.

        Args:
            plain: this and the next as in `search`.
            embed: likewise.
            model: likewise.
            is_home: whether the note may be in a workspace; given its root, too, "" on another machine.
            path: of the note in its workspace.
            line: of the note.

        Raises:
            NotFoundError: it is in no such workspace.
            StoreError: the store did not answer in time, or refused.
            DeadlineError: the caller's deadline passed.
        """

        def asked() -> TeamVerdict | None:
            opened = self._opened(model)
            for identity, one in opened.workspaces.items():
                if is_home(one, opened.roots.get(identity, "")):
                    with suppress(NotFoundError):  # two workspaces may have one name
                        key = SourceKey(identity, path)
                        return TeamVerdict(why_store(opened.team, plain, embed, key, line), opened)
            return None

        found = self._breaker.run(asked)
        if found is None:
            raise NotFoundError(f"the team's store has no {path}")
        return found

    def close(self) -> None:
        """Wait for no call any more."""
        self._calls.shutdown(wait=False, cancel_futures=True)
        self._hops.shutdown(wait=False, cancel_futures=True)

    def _opened(self, model: OwnModel) -> "OpenTeam":
        listed = self._workspaces()
        models = {one.model_id for one in listed if one.model_id}
        # One collection has the vectors of one model; a store without vectors has none of another one.
        common = model.id if model.id in models or not models else ""
        own = [replace(one, workspace=_of_model(one.workspace, model.id)) for one in self._own()]
        store = Overlaid(self._store, own, self._hops)
        team = StoreSearch(
            store, model.tokenizer, common, model.cosines, pool=POOL, together=side_by_side(self._calls)
        )
        names = {one.id: one for one in listed} | {one.workspace.id: one.workspace for one in own}
        return OpenTeam(team, names, {one.workspace.id: one.root for one in own})

    def _workspaces(self) -> tuple[PublishedWorkspace, ...]:
        asked, listed = self._listed
        if time.monotonic() - asked > WORKSPACES_S:
            listed = self._store.workspaces(HOP_S)
            self._listed = time.monotonic(), listed
        return listed


@dataclass(frozen=True, slots=True)
class OpenTeam:
    """The team's memory for one query."""

    team: StoreSearch
    workspaces: dict[str, PublishedWorkspace]  # by id
    roots: dict[str, str]  # of the workspaces of this machine, by id

    def home_of(self, key: SourceKey) -> PublishedWorkspace:
        """Return the workspace of a source."""
        found = self.workspaces.get(key.workspace)
        return found or PublishedWorkspace(key.workspace, key.workspace, "", "", "")


@dataclass(frozen=True, slots=True)
class TeamVerdict:
    """What becomes of a note in a search of the team's memory."""

    found: StoreVerdict
    opened: OpenTeam


@dataclass(frozen=True, slots=True)
class TeamAnswer:
    """The answer of the team's memory."""

    found: StoreAnswer
    opened: OpenTeam

    def read_whole(self, sources: Iterable[int]) -> None:
        """Add the other chunks of some sources to the view, for the sections around its hits.

        Raises:
            StoreError: the store did not answer in time.
        """
        view = self.found.view
        reader = view.reader
        assert isinstance(reader, MiniReader)
        numbers = {view.key(source): source for source in sources}
        for whole in self.opened.team.store.evidence(tuple(numbers), HOP_S) if numbers else ():
            source = numbers[whole.key]
            for chunk in whole.chunks:
                number = reader.starts[source] + chunk.ordinal
                if number not in reader.facts:
                    reader.add(number, source, chunk_facts(chunk))


class Overlaid:
    """A `ReadableStore` in which the workspaces of this machine are read out of their own indexes.

    For one query. A workspace that cannot be read here is read out of the store.
    """

    def __init__(self, store: ReadableStore, own: Sequence[Own], hops: ThreadPoolExecutor) -> None:
        self._store = store
        self._hops = hops
        self._here = {one.workspace.id: (one.root, LocalStore(one.workspace, one.open_view)) for one in own}

    def candidates(self, wanted: Wanted, deadline_s: float) -> Found:
        """Return the candidates of the store without those of this machine's workspaces, and these."""
        far = self._hops.submit(self._store.candidates, wanted, deadline_s)
        near = self._each("candidates", wanted, deadline_s)
        there = far.result()
        each = [*near, _without(there, list(self._here))]
        return Found(
            tuple(key for one in each for key in one.by_words),
            tuple(key for one in each for key in one.by_vector),
            tuple(map(_holders, zip(*(one.named for one in each), strict=True)))
            if all(len(one.named) == len(wanted.named) for one in each)
            else (),
            there.allowed,
        )

    def statistics(self, wanted: Wanted, deadline_s: float) -> Statistics:
        """Return the statistics of the store, in which a word that is new here is known, too."""
        far = self._hops.submit(self._store.statistics, wanted, deadline_s)
        near = self._each("statistics", wanted, deadline_s)
        found = far.result()
        return Statistics(
            max([found.chunks, *(one.chunks for one in near)]),
            max([found.total_length, *(one.total_length for one in near)]),
            _most(one.frequencies for one in (found, *near)),
            found.languages,
        )

    def vocabulary(self, word: str, deadline_s: float, language: str = "") -> Near:
        """Return the near words of the store and of this machine."""
        far = self._store.vocabulary(word, deadline_s, language)
        near = [far, *self._each("vocabulary", word, deadline_s, language)]
        return Near(
            _most(one.forms for one in near),
            _most(one.spellings for one in near),
            _most(one.endings for one in near),
        )

    def lean(self, chunks: tuple[ChunkKey, ...], wanted: Wanted, deadline_s: float) -> Evidence:
        """Return the evidence of the store's chunks, and of this machine's, without those of gone files."""
        theirs = tuple(key for key in chunks if key.workspace not in self._here)
        ours = tuple(key for key in chunks if key.workspace in self._here and self._is_there(key))
        far = self._hops.submit(self._store.lean, theirs, wanted, deadline_s) if theirs else None
        near = self._each("lean", ours, wanted, deadline_s) if ours else []
        return joined([*near, *([far.result()] if far is not None else [])])

    def evidence(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return sources whole."""
        return self._split("evidence", sources, deadline_s)

    def related(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return what decides which sources replace these."""
        return self._split("related", sources, deadline_s)

    def sources(self, workspace: str, after: str, limit: int, deadline_s: float) -> tuple[Listed, ...]:
        """Return the store's listing."""
        return self._store.sources(workspace, after, limit, deadline_s)

    def workspaces(self, deadline_s: float) -> tuple[PublishedWorkspace, ...]:
        """Return the store's workspaces."""
        return self._store.workspaces(deadline_s)

    def _split(
        self, name: str, sources: tuple[SourceKey, ...], deadline_s: float
    ) -> tuple[PublishedSource, ...]:
        theirs = tuple(key for key in sources if key.workspace not in self._here)
        ours = tuple(key for key in sources if key.workspace in self._here)
        near = self._each(name, ours, deadline_s) if ours else []
        far = getattr(self._store, name)(theirs, deadline_s) if theirs else ()
        return tuple(source for some in (*near, far) for source in some)

    def _each(self, name: str, *arguments: Any) -> list[Any]:
        """Ask each index of this machine; one that cannot be read is left to the store from then on."""
        found = []
        for identity, (_, store) in list(self._here.items()):
            try:
                found.append(getattr(store, name)(*arguments))
            except StoreError as error:
                log.warning("own_workspace_unread", kind=type(error.__cause__).__name__)
                self._here.pop(identity, None)
        return found

    def _is_there(self, key: ChunkKey) -> bool:
        found = self._here.get(key.workspace)
        root = found[0] if found else ""
        return os.path.exists(f"{root}/{key.path}")  # noqa: PTH110 - as in a search of the workspace


def _of_model(workspace: PublishedWorkspace, model_id: str) -> PublishedWorkspace:
    return PublishedWorkspace(workspace.id, workspace.name, workspace.machine, workspace.owner, model_id)


def _without(found: Found, workspaces: Iterable[str]) -> Found:
    own = set(workspaces)
    named = []
    for one in found.named:
        pairs = [
            (key, meets) for key, meets in zip(one.chunks, one.meets, strict=True) if key.workspace not in own
        ]
        chunks, meets = zip(*pairs, strict=True) if pairs else ((), ())
        named.append(Holders(chunks, meets, one.is_complete))
    return Found(
        tuple(key for key in found.by_words if key.workspace not in own),
        tuple(key for key in found.by_vector if key.workspace not in own),
        tuple(named),
        found.allowed,
    )


def _holders(each: Sequence[Holders]) -> Holders:
    return Holders(
        tuple(key for one in each for key in one.chunks),
        tuple(meets for one in each for meets in one.meets),
        all(one.is_complete for one in each),
    )


def _most(each: Iterable[dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in each:
        for word, count in some.items():
            found[word] = max(count, found.get(word, 0))
    return found

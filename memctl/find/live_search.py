"""Search as you type: by words at each key, by meaning after a pause. Independent of the screen and Textual.

Uses one connection, in the caller's event loop. Only the latest text counts: answers for earlier text are
dropped. At most one request by words and one by meaning are open, so fast typing does not load the daemon:
text typed while a request is open is skipped, except for the latest.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from memctl import editor, launch
from memctl.async_client import AsyncClient
from memctl.client import RpcError, Unreachable
from memctl.merged_hits import groups
from memctl.output import caveats
from memctl.output.explain import filter_text

PAUSE_S = 0.25  # longer than between two keys of a slow typist, too short to be noticed as a delay
TIMEOUT_S = 10.0  # the daemon's own deadline is 5; the rest is for a loaded machine
LOOK_S = 0.5  # arbitrary: between checks whether a daemon is back
# Parameters of a request that tells how memd understood the query. One hit: explaining 30 takes up to 300 ms.
SEEN = {"mode": "keyword", "limit": 1, "explain": True}
# Parameters of a search that are not filters. A search with filters and without words lists the newest notes.
RANKING = {"workspace", "mode", "fusion", "min_score", "sync", "wait", "limit"}
MOST_LOOKED_AT = 10_000  # notes, for those changed or opened last: a tenth of a second
LINES_AROUND = 40  # of a link that are shown; arbitrary

Answer = dict[str, Any]
Hit = dict[str, Any]


class LiveResult(NamedTuple):
    """The result for a typed text."""

    typed: str
    hits: list[Hit]  # best first, each with its `workspace`
    by_meaning: bool  # False: only by words, and the result by meaning follows
    filters: tuple[str, ...] = ()  # as memd understood them; only known after a pause
    notes: tuple[str, ...] = ()  # caveats
    error: str = ""  # instead of hits
    corrected: tuple[str, ...] = ()  # words that were also searched, because no chunk has the typed word
    is_weak: bool = False  # all hits are weak matches


class LiveSearch:
    """Searches for the text that the user is typing."""

    def __init__(
        self,
        requests: Sequence[dict[str, Any]],
        *,
        limit: int,
        on_found: Callable[[LiveResult], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        """Prepare the search; `run` connects.

        Args:
            requests: the parameters of `search` for each workspace: filters and ranking.
            limit: number of hits.
            on_found: gets the results for the latest text, by words and then by meaning.
            on_trouble: gets the reason why memd cannot be reached, and "" when it can be again.
        """
        self._requests = requests
        self._limit = limit
        self._on_found = on_found
        self._on_trouble = on_trouble
        self._narrowed = any(key not in RANKING for request in requests for key in request)
        self._typed = ""
        self._meant = False  # whether the result by meaning has arrived
        self._by_words, self._by_meaning = asyncio.Event(), asyncio.Event()
        self._pause: asyncio.TimerHandle | None = None
        self._client: AsyncClient | None = None
        self._wanted = asyncio.Event()  # set by each key

    async def run(self) -> None:
        """Connect and answer `ask`, until the task is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._stay_connected())
                group.create_task(self._answer(self._by_words, by_meaning=False))
                group.create_task(self._answer(self._by_meaning, by_meaning=True))
        finally:
            if self._pause is not None:
                self._pause.cancel()
            if self._client is not None:
                await self._client.close()

    def ask(self, typed: str) -> None:
        """Search for *typed* instead of any earlier text."""
        self._typed, self._meant = typed, False
        if self._pause is not None:
            self._pause.cancel()
        self._by_meaning.clear()
        self._by_words.set()
        self._wanted.set()
        self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._by_meaning.set)

    async def section(self, hit: Hit) -> str:
        """Return the text of a hit from the current file. Raises Unreachable or RpcError."""
        answer = await self._of(
            hit, "get", start_line=hit["start_line"], end_line=hit["end_line"], links=False
        )
        return str(answer["text"])

    async def related(self, hit: Hit) -> list[Hit]:
        """Return what other notes say nearly the same as a hit. Raises Unreachable or RpcError."""
        answer = await self._of(hit, "similar", line=hit["start_line"], limit=self._limit)
        return [{**found, "workspace": hit["workspace"]} for found in answer["hits"]]

    async def backlinks(self, hit: Hit) -> list[Hit]:
        """Return the places that link to a hit's note, as hits. Raises Unreachable or RpcError."""
        answer = await self._of(hit, "links", limit=self._limit)
        return [_as_hit(hit["workspace"], link) for link in answer["links"]]

    async def _of(self, hit: Hit, method: str, **more: Any) -> Answer:
        if self._client is None:
            raise Unreachable("there is no connection to memd")
        params = {"workspace": hit["workspace"], "path": hit["path"], **more}
        return dict(await self._client.call(method, params, timeout_s=TIMEOUT_S))

    async def _answer(self, changed: asyncio.Event, *, by_meaning: bool) -> None:
        """Forever: wait for *changed*, and search for the latest text, by words or by meaning."""
        while True:
            await changed.wait()
            changed.clear()
            typed, client = self._typed, self._client
            if client is None:
                continue  # `_stay_connected` asks again after connecting
            try:
                found = await self._found(client, typed, by_meaning=by_meaning)
            except Unreachable as error:
                self._on_trouble(str(error))
                continue
            except RpcError as error:
                found = LiveResult(typed, [], by_meaning=by_meaning, error=str(error))
            if typed != self._typed or (self._meant and not by_meaning):
                continue  # outdated
            self._meant = by_meaning
            self._on_found(found)

    async def _found(self, client: AsyncClient, typed: str, *, by_meaning: bool) -> LiveResult:
        """Search each workspace. Raises an error if none answers, or the connection ended."""
        if not typed.strip() and not self._narrowed:
            return LiveResult(typed, await self._last(client), by_meaning)
        how = {"query": typed, "limit": self._limit, "prefix": True}
        quick = {} if by_meaning else {"mode": "keyword"}
        questions = [{**quick, **request, **how} for request in self._requests]
        if by_meaning:  # there is time to ask also which filters memd understood
            questions += [{**request, "query": typed, **SEEN} for request in self._requests]
        calls = (client.call("search", params, timeout_s=TIMEOUT_S) for params in questions)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        searched, understood = outcomes[: len(self._requests)], outcomes[len(self._requests) :]
        failures = [outcome for outcome in searched if isinstance(outcome, BaseException)]
        answers = [outcome for outcome in searched if not isinstance(outcome, BaseException)]
        for error in failures:
            if not answers or not isinstance(error, RpcError):
                raise error
        found = _merged(typed, answers, failures, limit=self._limit, by_meaning=by_meaning)
        explained = [
            outcome["explanation"] for outcome in understood if not isinstance(outcome, BaseException)
        ]
        filters = [
            filter_text(condition) for explanation in explained for condition in explanation["filters"]
        ]
        return found._replace(filters=tuple(dict.fromkeys(filters)))

    async def _last(self, client: AsyncClient) -> list[Hit]:
        """Return the notes that were changed or opened last."""
        opened = editor.opened()
        found = list[tuple[float, Hit]]()
        for request in self._requests:
            after: str | None = ""
            while after is not None and len(found) < MOST_LOOKED_AT:
                asked = {"workspace": request["workspace"], "after": after, "limit": 1000}
                answer = await client.call("sources", asked, timeout_s=TIMEOUT_S)
                after, root = answer["next"], answer["workspace"]
                for note in answer["sources"]:
                    changed = note["modified"] or 0.0
                    day = f"changed {datetime.fromtimestamp(changed).astimezone():%Y-%m-%d %H:%M}"
                    last = max(changed, opened.get(f"{root}/{note['path']}", 0.0))
                    found.append((last, _as_hit(root, note | {"match_text": day if changed else ""})))
        return [hit for _, hit in sorted(found, key=lambda one: (-one[0], one[1]["path"]))[: self._limit]]

    async def _stay_connected(self) -> None:
        """Forever: connect, starting a daemon if none runs, and wait until the connection has ended."""
        while True:
            try:
                started = await asyncio.to_thread(launch.ensure_daemon)
                started.close()
                self._client = client = await AsyncClient.connect()
            except Unreachable as error:
                self._on_trouble(f"{error} (press a key to try again)")
                self._wanted.clear()
                await self._wanted.wait()
                continue
            self._on_trouble("")
            self.ask(self._typed)
            lost = await client.lost()
            self._client = None
            await client.close()
            self._on_trouble(f"{lost} (press a key to start it again)")
            await self._key_or_daemon()

    async def _key_or_daemon(self) -> None:
        """Wait for a key or a new daemon: the old one may have been stopped on purpose."""
        self._wanted.clear()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK_S)
                return
            with suppress(Unreachable):
                found = await AsyncClient.connect()
                await found.close()
                return


def _as_hit(workspace: str, found: dict[str, Any]) -> Hit:
    """Return a note, or the place of a link in one, in the form of a hit, with the lines around it."""
    line = found.get("line") or 1
    span = {"start_line": max(1, line - LINES_AROUND), "end_line": line + LINES_AROUND, "match_line": line}
    return {**found, **span, "workspace": workspace}


def _merged(
    typed: str, answers: list[Answer], failures: list[BaseException], *, limit: int, by_meaning: bool
) -> LiveResult:
    """Merge the answers of one or several workspaces."""
    merged = [hit for group in groups(answers) for hit in group[:limit]]
    # Corrections and the quality of matches change with each key: notes about them would make the screen
    # jump.
    steady = [answer | {"corrected": {}} for answer in answers]
    steady = [answer | {"confidence": "strong"} if caveats.is_weak(answer) else answer for answer in steady]
    notes = [note for answer in steady if (note := caveats.notes(answer))]
    notes += [str(error) for error in failures]
    corrected = [term for answer in answers for term in answer["corrected"].values()]
    return LiveResult(
        typed,
        merged,
        by_meaning,
        notes=tuple(dict.fromkeys(notes)),
        corrected=tuple(dict.fromkeys(corrected)),
        is_weak=by_meaning and all(map(caveats.is_weak, answers)),
    )

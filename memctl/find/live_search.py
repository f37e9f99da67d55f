"""Search as one types: by words at once, by meaning when one pauses. Draws nothing and knows no Textual.

One connection, for the event loop that it is used in. What was typed last counts: an answer to anything else
is dropped. At most one question of each kind is open, so that fast typing is no load on the daemon: of what
was typed while it was answered only the last is asked.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from memctl import launch
from memctl.async_client import AsyncClient
from memctl.client import RpcError, Unreachable
from memctl.commands.multi_search import groups
from memctl.output import caveats
from memctl.paths import PathError

# Longer than between two keys of somebody who types slowly, shorter than one waits without noticing.
PAUSE_S = 0.25
TIMEOUT_S = 10.0  # the daemon gives up at 5; the rest is for a loaded machine
LOOK_S = 0.5  # between looks whether a daemon is back; arbitrary
# What tells how memd understood a query. Of one hit: to explain thirty takes up to 300 ms of work.
SEEN = {"mode": "keyword", "limit": 1, "explain": True}
# Parameters of a search that narrow nothing: with others alone the newest notes are listed.
RANKING = {"workspace", "mode", "fusion", "min_score", "sync", "wait", "limit"}

Answer = dict[str, Any]
Hit = dict[str, Any]


class Found(NamedTuple):
    """What there is to show for what was typed."""

    typed: str
    hits: list[Hit]  # best first, each with its `workspace`
    by_meaning: bool  # else by words alone, and more is to come
    filters: tuple[str, ...] = ()  # that narrow it, as memd understood them; known once one pauses
    notes: tuple[str, ...] = ()  # how it is not what one might take it for
    error: str = ""  # in place of the hits
    corrected: tuple[str, ...] = ()  # what was looked for besides, where no chunk has a word of it


class LiveSearch:
    """The questions to a daemon that follow what is typed."""

    def __init__(
        self,
        requests: Sequence[dict[str, Any]],
        *,
        limit: int,
        on_found: Callable[[Found], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        """Prepare a search that asks nothing yet.

        Args:
            requests: the parameters of `search` for each workspace: filters and how to rank.
            limit: hits that are wanted.
            on_found: gets what is found for what was typed last, by words and then by meaning.
            on_trouble: gets why memd cannot be asked, "" once it can be again.
        """
        self._requests = requests
        self._limit = limit
        self._on_found = on_found
        self._on_trouble = on_trouble
        self._narrowed = any(key not in RANKING for request in requests for key in request)
        self._typed = ""
        self._meant = False  # it was answered by meaning
        self._by_words, self._by_meaning = asyncio.Event(), asyncio.Event()
        self._pause: asyncio.TimerHandle | None = None
        self._client: AsyncClient | None = None
        self._wanted = asyncio.Event()  # somebody types

    async def run(self) -> None:
        """Answer what is asked, until this is cancelled."""
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
        """Search for *typed* from now on, and for nothing that was typed before."""
        self._typed, self._meant = typed, False
        if self._pause is not None:
            self._pause.cancel()
        self._by_meaning.clear()
        self._by_words.set()
        self._wanted.set()
        self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._by_meaning.set)

    async def section(self, hit: Hit) -> str:
        """Return the text of a hit, from its file as it is now. Raises Unreachable or RpcError."""
        if self._client is None:
            raise Unreachable("there is no connection to memd")
        answer = await self._client.get(
            workspace=hit["workspace"],
            path=hit["path"],
            start_line=hit["start_line"],
            end_line=hit["end_line"],
            timeout_s=TIMEOUT_S,
        )
        return answer["text"]

    async def _answer(self, asked: asyncio.Event, *, by_meaning: bool) -> None:
        """Answer the text that was typed last, again and again, by words or by meaning."""
        while True:
            await asked.wait()
            asked.clear()
            typed, client = self._typed, self._client
            if client is None:
                continue  # it is asked again once there is one
            try:
                found = await self._found(client, typed, by_meaning=by_meaning)
            except Unreachable as error:
                self._on_trouble(str(error))
                continue
            except RpcError as error:
                found = Found(typed, [], by_meaning=by_meaning, error=str(error))
            if typed != self._typed or (self._meant and not by_meaning):
                continue  # it comes too late
            self._meant = by_meaning
            self._on_found(found)

    async def _found(self, client: AsyncClient, typed: str, *, by_meaning: bool) -> Found:
        """Ask each workspace. Raises where none answers, or the connection ended."""
        if not typed.strip() and not self._narrowed:
            return Found(typed, [], by_meaning=by_meaning)
        how = {"query": typed, "limit": self._limit, "prefix": True}
        quick = {} if by_meaning else {"mode": "keyword"}
        questions = [{**quick, **request, **how} for request in self._requests]
        if by_meaning:  # it is in no hurry: memd says as well which filters it sees
            questions += [{**request, "query": typed, **SEEN} for request in self._requests]
        asked = (client.call("search", params, timeout_s=TIMEOUT_S) for params in questions)
        said = await asyncio.gather(*asked, return_exceptions=True)
        searched, seen = said[: len(self._requests)], said[len(self._requests) :]
        failures = [one for one in searched if isinstance(one, BaseException)]
        answers = [one for one in searched if not isinstance(one, BaseException)]
        for error in failures:
            if not answers or not isinstance(error, RpcError):
                raise error
        found = _merged(typed, answers, failures, limit=self._limit, by_meaning=by_meaning)
        explained = [one["explanation"] for one in seen if not isinstance(one, BaseException)]
        filters = [_filter(**one) for explanation in explained for one in explanation["filters"]]
        return found._replace(filters=tuple(dict.fromkeys(filters)))

    async def _stay_connected(self) -> None:
        """Connect, starting a daemon where none runs, and again when the connection has ended."""
        while True:
            try:
                started = await asyncio.to_thread(launch.ensure_daemon)
                started.close()
                self._client = client = await AsyncClient.connect()
            except (Unreachable, PathError) as error:
                self._on_trouble(f"{error} (the next key tries again)")
                self._wanted.clear()
                await self._wanted.wait()
                continue
            self._on_trouble("")
            self.ask(self._typed)
            lost = await client.lost()
            self._client = None
            await client.close()
            self._on_trouble(f"{lost} (it is started again by the next key)")
            await self._key_or_daemon()

    async def _key_or_daemon(self) -> None:
        """Wait until the user types or somebody starts the daemon: it was stopped, perhaps on purpose."""
        self._wanted.clear()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK_S)
                return
            with suppress(Unreachable, PathError):
                found = await AsyncClient.connect()
                await found.close()
                return


def _merged(
    typed: str, answers: list[Answer], failures: list[BaseException], *, limit: int, by_meaning: bool
) -> Found:
    """Return what several workspaces, or one, answered."""
    merged = [hit for group in groups(answers) for hit in group[:limit]]
    # What a word was taken for, and how good a match is, changes with each key: a sentence about it would
    # make the screen jump.
    steady = [answer | {"corrected": {}} for answer in answers]
    steady = [one | {"confidence": "strong"} if caveats.is_weak(one) else one for one in steady]
    notes = [note for answer in steady if (note := caveats.notes(answer))]
    notes += [str(error) for error in failures]
    corrected = [term for answer in answers for term in answer["corrected"].values()]
    return Found(
        typed,
        merged,
        by_meaning,
        notes=tuple(dict.fromkeys(notes)),
        corrected=tuple(dict.fromkeys(corrected)),
    )


def _filter(filter: str, value: str) -> str:  # noqa: A002 (as it is called on the wire)
    """Return a filter as it is typed."""
    return {"phrase": f'"{value}"', "excluded": f"-{value}"}.get(filter, f"{filter}:{value}")

"""Honest clients, like editors and agents: many connections, with several requests in flight on each."""

import asyncio
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.made_notes import VOCABULARY, word
from memctl.protocol import ANSWERS, Decoder, Request, Response, pack

PATIENCE_S = 30.0  # a later answer counts as lost
FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 1.0  # after MEMD_BUSY: doubled each time, with chance in it
WORDS_A_QUERY = 6
DISTINCT = 20  # queries, where the clients repeat them


@dataclass
class Tally:
    """What a load run saw."""

    ms: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # by method
    errors: Counter[str] = field(default_factory=Counter)  # by code
    lost: int = 0
    in_time: Counter[str] = field(default_factory=Counter)  # answered before the run's end, by method
    stop: float = math.inf


class Client:
    """One connection; answers may come in any order."""

    def __init__(self, incoming: asyncio.StreamReader, outgoing: asyncio.StreamWriter) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[Response]] = {}
        self._reading = asyncio.create_task(self._read())

    @staticmethod
    async def connect(socket: Path) -> "Client":
        """Connect."""
        return Client(*await asyncio.open_unix_connection(str(socket), limit=1 << 24))

    async def ask(self, method: str, params: dict[str, Any], tally: Tally) -> None:
        """Send a request and record the outcome; after MEMD_BUSY, retry after a while."""
        began, pause_s = perf_counter(), FIRST_PAUSE_S
        while True:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    response = await self._once(method, params)
            except (TimeoutError, ConnectionError):
                tally.lost += 1
                return
            if response.error is None:
                tally.ms[method].append(1000 * (perf_counter() - began))
                tally.in_time[method] += perf_counter() < tally.stop
                return
            code = response.error[1].partition(":")[0]
            tally.errors[code] += 1
            if code != "MEMD_BUSY":
                return
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, LAST_PAUSE_S)

    async def _once(self, method: str, params: dict[str, Any]) -> Response:
        id_ = next(self._ids)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._open[id_] = answer
        self._outgoing.write(pack(Request(id_, method, params)))
        return await answer

    async def close(self) -> None:
        """End the connection."""
        self._reading.cancel()
        self._outgoing.close()

    async def _read(self) -> None:
        reader = Decoder(ANSWERS)
        while received := await self._incoming.read(1 << 18):
            for message in reader.feed(received):
                if isinstance(message, Response) and not (waiting := self._open.pop(message.id)).done():
                    waiting.set_result(message)
        for waiting in self._open.values():
            waiting.set_exception(ConnectionError("closed"))


def requests(workspace: str, seed: int, *, repeated: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests of a client: mostly searches, with the other requests of an editor."""
    chance = random.Random(seed)
    common = random.Random(0)
    few = [_query(common) for _ in range(DISTINCT)]
    while True:
        kind = chance.random()
        query = chance.choice(few) if repeated else _query(chance)
        if kind < 0.80:
            yield "search", {"workspace": workspace, "query": query}
        elif kind < 0.85:
            yield "recall", {"workspace": workspace, "query": query}
        elif kind < 0.90:
            yield "get", {"workspace": workspace, "path": f"note0000/{chance.randrange(1, 99)}.md"}
        elif kind < 0.95:
            yield "status", {}
        else:
            yield "ping", {}


async def load(
    socket: Path, workspace: str, *, clients: int, in_flight: int, seconds: float, repeated: bool
) -> Tally:
    """Send requests for a while, with *in_flight* open on each of *clients* connections."""
    stop = perf_counter() + seconds
    tally = Tally(stop=stop)

    async def keep_asking(client: Client, asked: Iterator[tuple[str, dict[str, Any]]]) -> None:
        while perf_counter() < stop:
            method, params = next(asked)
            await client.ask(method, params, tally)

    connected = [await Client.connect(socket) for _ in range(clients)]
    await asyncio.gather(
        *(
            keep_asking(client, requests(workspace, seed=number * 1000 + lane, repeated=repeated))
            for number, client in enumerate(connected)
            for lane in range(in_flight)
        )
    )
    for client in connected:
        await client.close()
    return tally


def _query(chance: random.Random) -> str:
    # Ranks as people use words: common ones more often, never only the commonest.
    return " ".join(word(int(VOCABULARY ** chance.random())) for _ in range(WORDS_A_QUERY))

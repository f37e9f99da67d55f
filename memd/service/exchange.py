"""How far is one request on its way to its one reply, and how long may it take?"""

import asyncio
import math
from dataclasses import dataclass

from memctl.protocol import Request


@dataclass(slots=True, eq=False)
class Exchange:
    """One request on its way to its one reply."""

    request: Request
    started: float  # in loop.time()
    answered: bool = False
    has_turn: bool = False  # it is one of the few of its connection that are worked on
    timer: asyncio.TimerHandle | None = None
    goes_on: str = ""  # what its method does to the end, whoever waits

    def say_goes_on(self, what: str) -> None:
        """Note what goes on after the deadline."""
        self.goes_on = what


def budget_s(request: Request, own_s: float | None) -> float | None:
    """Return how long a request may take: a client may lower what its method has, never raise it."""
    asked_ms: int | None = request.params.get("timeout_ms")
    if asked_ms is None:
        return own_s
    return min(asked_ms / 1000, math.inf if own_s is None else own_s)

"""What do the connections of one server have in common, and is there room for another one?"""

import asyncio
import resource
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memd.service.call import Deadlines, Handler, Limits

if TYPE_CHECKING:
    from memd.service.connection import Connection


def _most_descriptors() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@dataclass(slots=True)
class Shared:
    """What each connection of one server knows."""

    handle: Handler
    limits: Limits
    deadline_s: Deadlines
    uid: int  # the only one that may connect
    connections: set["Connection"] = field(default_factory=set)
    tasks: set[asyncio.Future[Any]] = field(default_factory=set)
    stopping: bool = False
    descriptors: int = field(default_factory=_most_descriptors)

    @property
    def served(self) -> int:
        """How many connections are there, without those that are only told that they are too many."""
        return sum(not one.over_limit for one in self.connections)

    def has_room(self, descriptor: int) -> bool:
        """Tell whether one more connection can be served, one with that file descriptor."""
        limits, served = self.limits, self.served
        enough = self.left_after(descriptor) >= limits.spare_descriptors or served < limits.least_connections
        return enough and served < limits.connections

    def make_room(self) -> "Connection | None":
        """Close the connection that has been idle for longest, and return it; None where none is idle."""
        since = {one: at for one in self.connections if (at := one.idle_since()) is not None}
        return next((one for one in sorted(since, key=since.__getitem__) if one.give_way()), None)

    def is_full(self, descriptor: int) -> bool:
        """Tell whether whoever comes after the connection with that descriptor has to wait."""
        limits, taken = self.limits, len(self.connections)
        few = self.left_after(descriptor) < limits.spare_descriptors // 2 and taken > limits.least_connections
        return few or taken >= limits.connections + limits.refused_connections

    def left_after(self, descriptor: int) -> int:
        """Return how many descriptors are free at least: the system gives out the lowest free number."""
        return self.descriptors - descriptor - 1

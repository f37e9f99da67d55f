"""What is asked, and where is its answer? The records that all steps share."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer stands."""

    path: str  # of the source, relative to the workspace
    line: int | None  # 1-based; None: wherever in the source


@dataclass(frozen=True, slots=True)
class Question:
    """One query with all that answers it."""

    text: str
    places: tuple[Place, ...]  # each path and line once, at least one

    @property
    def paths(self) -> frozenset[str]:
        """The sources that answer it."""
        return frozenset(place.path for place in self.places)

    @property
    def passages(self) -> tuple[Place, ...]:
        """The answers of which the line is known."""
        return tuple(place for place in self.places if place.line is not None)

"""The rules that the lives of all derived data of an index share, for tests of what happens in any order."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests_support import Notes


class IndexLife(RuleBasedStateMachine):
    """An index, and a query that holds a view. `live` begins it."""

    folder: Path
    notes: Notes
    building: Any  # what is being made; None
    held: Any  # the context of a query, and its view; None

    def live(self, folder: Path) -> None:
        self.folder = folder
        self.notes = Notes(folder)
        self.clock = self.crashes = 0
        self.building = self.held = None

    @rule()
    def crash(self):
        self.let_go()
        self.crashes += 1
        folder = self.folder / f"crash{self.crashes}"
        folder.mkdir()
        after = self.notes.crashed(folder)
        self.notes.index.close()
        self.notes, self.building = after, None
        self.opened()

    def opened(self) -> None:
        """Do what follows a start."""

    @precondition(lambda self: self.held is None)
    @rule()
    def begin_a_query(self):
        context = self.notes.index.view()
        self.held = (context, context.__enter__())

    @precondition(lambda self: self.held is not None)
    @rule()
    def end_a_query(self):
        self.let_go()

    def let_go(self) -> None:
        if self.held is not None:
            self.held[0].__exit__(None, None, None)
            self.held = None


class DerivedFileLife(IndexLife):
    """An index whose file may be made, given up and dropped."""

    MOST_SLICES = 1  # of the making, in one step

    @property
    def keeper(self) -> Any:
        """Who makes, adopts and drops the file."""
        raise NotImplementedError

    def can_make(self) -> bool:
        """Tell whether there is enough to make a file of."""
        return True

    @precondition(lambda self: self.can_make())
    @rule(slices=st.runner().flatmap(lambda life: st.integers(1, life.MOST_SLICES)))
    def make_a_part_of_a_file(self, slices):
        self.building = self.building or self.keeper.begin()
        if any(self.building.step(0.0) for _ in range(slices)):
            self.keeper.adopt(self.building)
            self.building = None

    @rule()
    def give_a_file_up(self):
        if self.building is not None:
            self.building.abandon()
            self.building = None

    @rule()
    def drop_the_file(self):
        self.keeper.drop()

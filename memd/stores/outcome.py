"""The outcome of the last call of a team's store: publishing, searches and probes note it."""

from memd.errors import StoreError, StoreRefusedError


class Outcome:
    """The last answer or failure of a store. For any thread: each note replaces whole values."""

    def __init__(self) -> None:
        self.is_reachable: bool | None = None  # whether the last call was answered; None: there was none
        self.error = ""  # why the last call had no result; "" if it had
        self.last_error = ""

    def note_answer(self) -> None:
        """Note that the store has done what it was asked."""
        self.is_reachable, self.error = True, ""

    def note_failure(self, error: StoreError) -> None:
        """Note why it has not."""
        self.error = self.last_error = str(error)
        self.is_reachable = isinstance(error, StoreRefusedError)

    def note_refusal(self, why: str) -> None:
        """Note that the store refuses one workspace, and may do what else it is asked."""
        self.is_reachable, self.last_error = True, why

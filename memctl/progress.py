"""Progress of an index, an import or a download, on stderr: a bar if the terminal can draw it, else lines."""

import os
import signal
import sys
import time
from typing import Any, Self

from memctl.text import is_plain_terminal

_STAGES = {
    "scan": "reading",
    "index": "indexing",
    "embed": "embedding",
    "ask": "asking",
    "check": "checking",
    "repair": "repairing",
    "purge": "purging",
    "import": "importing KiB",
    "download": "downloading KiB",
}
_LINE_EVERY_S = 5.0  # arbitrary: shows that work goes on without filling a log


class Progress:
    """Shows the progress notifications of one call, from the first until the end of the context."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._next_line_s = 0.0
        self._stage = ""
        self._began: tuple[float, int] | None = None  # time and `done` of this stage's first notification

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, message: dict[str, Any]) -> None:
        """Show one notification: {"stage", "done", "total"}."""
        stage = _STAGES.get(str(message.get("stage")), "working")
        done, total = int(message.get("done") or 0), int(message.get("total") or 0)
        if sys.stderr.isatty() and not is_plain_terminal():
            if self._bar is None:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
                from rich.progress import Progress as Bar

                text = TextColumn("{task.description}")
                columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
                self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
                self._task = self._bar.add_task(stage, total=None)
                for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                    if signal.getsignal(number) is not signal.SIG_IGN:  # keep nohup's setting
                        signal.signal(number, _end)
                self._bar.start()
            # With an unknown total, the bar pulses instead of showing 0 %.
            self._bar.update(self._task, description=stage, completed=done, total=total or None)
        else:
            self._write(stage, done, total)

    def _write(self, stage: str, done: int, total: int) -> None:
        now_s = time.monotonic()
        if not total and stage != _STAGES["scan"]:
            return  # there is nothing to do; only a scan does not know its total
        if stage != self._stage:
            self._stage, self._began = stage, (now_s, done)
        # Independent of stages, because scanning a folder again alternates between them.
        if now_s < self._next_line_s:
            return
        self._next_line_s = now_s + _LINE_EVERY_S
        amount = f" {done:,}/{total:,}{self._left(now_s, done, total)}" if total else ""
        print(f"memctl: {stage}{amount}", file=sys.stderr, flush=True)

    def _left(self, now_s: float, done: int, total: int) -> str:
        """Return an estimate of the time left, from the rate since this stage began."""
        since_s, first = self._began or (now_s, done)
        if done <= first:
            return ""
        from memctl.text import about  # most commands show no progress

        return f", about {about((now_s - since_s) / (done - first) * (total - done))} left"


def _end(number: int, _frame: object) -> None:
    """End by a signal as without a handler, but with the cursor that the bar hides."""
    os.write(2, b"\x1b[?25h")
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)

"""Counts the modules, functions and lines of the project that run for one search and for one saved file.

Starts the daemon in this process, on a temporary folder of notes, and traces every thread while one request
is answered. A line counts once, however often it runs; beside it are all lines of these files, which a reader
has before him. Code that runs at import time or between requests (timers, the watchdog) does not count, nor
does the client. With --records it also counts the records (structs, dataclasses, named tuples of the package)
that a request passes through on its way from wire to wire: the types of arguments, locals and results of its
functions, and what these hold. To be run from the root of a checkout:

    python tools/count_modules.py [--names] [--records]
"""

import argparse
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = str(ROOT / "memd") + os.sep
READY_TIMEOUT_S = 60.0  # a cold start with the model takes a few seconds
SETTLE_S = 2.0  # after this time nothing of the start or of a request is still running
NOTES = {
    "brca1.md": "# Genes\n\nBRCA1 mutation analysis of the second cohort.\n",
    "tabs.md": "# Code style\n\nTabs, never spaces.\n",
}


class Recorder:
    """Collects the package's lines that run while recording, and their functions."""

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()  # file, line
        self.functions: set[tuple[str, int]] = set()  # file, first line
        self.records: set[str] = set()
        self.sees_records = False  # looking at each value takes long
        self.on = False

    def __call__(self, frame: FrameType, event: str, result: Any) -> "Recorder | None":
        """Handle one event of the tracer."""
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name == "<module>":
            return None
        if self.on:
            if event == "line":
                self.lines.add((code.co_filename, frame.f_lineno))
            self.functions.add((code.co_filename, code.co_firstlineno))
            if self.sees_records and event in {"call", "return"}:
                for value in (*frame.f_locals.values(), result):
                    self._note(value, 2)
        return self

    def _note(self, value: Any, depth: int) -> None:
        """Note the type of a record, of those in it, and of the first one of several."""
        kind = type(value)
        fields = ("__struct_fields__", "__dataclass_fields__", "_fields")
        names = next(
            (getattr(kind, one) for one in fields if isinstance(getattr(kind, one, None), tuple | dict)), ()
        )
        if names and kind.__module__.startswith("memd."):
            self.records.add(f"{kind.__module__}.{kind.__qualname__}")
            held = [getattr(value, name, None) for name in names]
        else:
            held = (
                list(value.values())[:1] if kind is dict else list(value[:1]) if kind in {list, tuple} else []
            )
        for one in held if depth else ():
            self._note(one, depth - 1)


def main() -> int:
    """Count, print, stop the daemon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--names", action="store_true", help="name the modules, too")
    parser.add_argument("--records", action="store_true", help="count the records, too, and name them")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memd-count-") as scratch:
        base = Path(scratch)
        for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
            (base / variable).mkdir(mode=0o700)
            os.environ[variable] = str(base / variable)
        os.environ.pop("MEMD_SOCKET", None)
        notes = base / "notes"
        notes.mkdir()
        for name, text in NOTES.items():
            (notes / name).write_text(text, encoding="utf-8")
        _count(notes, names=arguments.names, records=arguments.records)
    return 0


def _count(notes: Path, *, names: bool, records: bool) -> None:
    recorder = Recorder()
    recorder.sees_records = records
    threading.settrace(recorder)
    sys.settrace(recorder)
    failed: list[BaseException] = []

    def client() -> None:
        try:
            _ask(notes, recorder, names=names)
        except BaseException as error:  # noqa: BLE001 - raised again after the daemon has ended
            failed.append(error)
        finally:
            os.kill(os.getpid(), 15)

    asking = threading.Thread(target=client, name="client")
    _daemon(asking)
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]  # the documented way to turn it off
    if failed:
        raise failed[0]


def _daemon(asking: threading.Thread) -> None:
    """Run the daemon in this thread; start *asking* when clients can connect."""
    from memd import daemon, logs

    with Path(os.devnull).open("w", encoding="utf-8") as silent:
        logs.configure(silent, terminal=False, verbose=False)
        daemon.run(lambda told: asking.start() if told == "READY" else print(told, file=sys.stderr))


def _ask(notes: Path, recorder: Recorder, *, names: bool) -> None:
    from memctl import paths
    from memctl.client import Client

    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(READY_TIMEOUT_S)
        probe.connect(str(paths.socket_path()))
    with Client.connect() as memd:
        memd.call("workspace.add", {"path": str(notes)})
        memd.call("index", {"workspace": str(notes)})
        query = {"query": "breast cancer gene", "workspace": str(notes)}
        memd.call("search", query)
        other = {**query, "query": "indentation"}
        _measure(recorder, "search", lambda: memd.call("search", other), names=names)

        def save() -> None:
            (notes / "new.md").write_text("# New\n\nA quinquagenarian zebra.\n", encoding="utf-8")

        _measure(recorder, "saved file, to its words and its vector", save, names=names)


def _measure(recorder: Recorder, what: str, work: Callable[[], object], *, names: bool) -> None:
    time.sleep(SETTLE_S)
    recorder.lines.clear()
    recorder.functions.clear()
    recorder.records.clear()
    recorder.on = True
    work()
    if what != "search":
        time.sleep(SETTLE_S)
    recorder.on = False
    found = sorted({name for name, _ in recorder.functions})
    read = {name: len(Path(name).read_text(encoding="utf-8").splitlines()) for name in found}
    print(
        f"{what}: {len(found)} modules, {len(recorder.functions)} functions, "
        f"{len(recorder.lines):,} lines of {sum(read.values()):,}"
    )
    if recorder.sees_records:
        print(f"  {len(recorder.records)} records: {', '.join(sorted(recorder.records))}")
    for name in found if names else ():
        ran = sum(1 for file, _ in recorder.lines if file == name)
        print(f"  {name.removeprefix(PACKAGE)}: {ran} of {read[name]}")


if __name__ == "__main__":
    sys.exit(main())

"""Where are notes searched that lack their headings? In a workspace of our own that is gone afterwards.

It lies in memd's state folder: 0700, on a disk, never synced, and the daemon can read it also as a systemd
service, whose /tmp may be another one. Whatever ends the command, the workspace is removed from the daemon
(which deletes its index) and the folder is deleted. After kill -9 or a power cut the next `memctl eval`
does that, and `memctl uninstall --purge`.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any

from memctl import paths
from memctl.client import RpcError, Unreachable
from memctl.commands import common
from memctl.exits import CommandError
from memctl.render.text import to_json

PREFIX = "eval-"  # of the folder's name; memd's own are hexadecimal
REMOVE_TIMEOUT_S = 60.0  # the daemon ends what it is doing there first
DYING_S = 0.5  # arbitrary: what the kernel needs for the files and memory of a process that was killed
ADD_TIMEOUT_S = 120.0  # registering looks through the folder

_LOCK = "lock"  # held as long as its command lives
_NOTES = "notes"


@contextlib.contextmanager
def private_copy(texts: Mapping[str, Sequence[str]], config: Mapping[str, Any]) -> Iterator[str]:
    """
    Write notes into a folder of their own, make it a workspace, and give its root.

    Args:
        texts: path → lines.
        config: the workspace's settings, as `workspace.configure` gives them. The patterns and `sidecars`
            are replaced: all that is written is a source, and nothing of it is to be kept.

    Raises:
        CommandError: the folder cannot be written.
        RpcError, Unreachable: the daemon does not take it.
    """
    state = paths.state_dir()
    paths.make_private_dir(state)
    _sweep(state)
    with _ending_orderly():
        with _undisturbed():  # a folder without its lock would never be taken for a leftover
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=state)).resolve()  # 0700
            lock = _locked(folder)
        try:
            _write(folder / _NOTES, texts, config)
            with common.daemon() as client:
                params = {"path": str(folder / _NOTES)}
                root = str(client.call("workspace.add", params, timeout_s=ADD_TIMEOUT_S)["root"])
            yield root
        finally:
            with _undisturbed():
                _remove(folder)
                os.close(lock)


def leftovers(state: Path) -> list[Path]:
    """Return the copies whose command was killed: nobody holds their lock."""
    return [
        folder for folder in sorted(state.glob(f"{PREFIX}*")) if not folder.is_symlink() and _is_free(folder)
    ]


def toml_of(config: Mapping[str, Any]) -> str:
    """Return settings as TOML: texts, numbers, truth values, lists, and tables of these on one line."""
    return "".join(f"{key} = {_toml(value)}\n" for key, value in config.items())


def _sweep(state: Path) -> None:
    for folder in leftovers(state):
        _remove(folder)


def _locked(folder: Path) -> int:
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def _is_free(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # it is being made, or is none of ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _write(root: Path, texts: Mapping[str, Sequence[str]], config: Mapping[str, Any]) -> None:
    # All that is here is a source, whatever its name: the workspace's own patterns have chosen already.
    endings = {PurePosixPath(path).suffix for path in texts}
    plain = all(ending[1:].isalnum() for ending in endings)
    patterns = [f"**/*{ending}" for ending in sorted(endings)] if plain else ["**/*"]
    settings = {**config, "sources": patterns, "ignore": [], "sidecars": False}
    try:
        (root / "memory").mkdir(mode=0o700, parents=True)
        (root / "memory" / "config.toml").write_text(toml_of(settings), encoding="utf-8")
        for path, lines in texts.items():
            target = root / path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="\n")
    except OSError as error:
        raise CommandError(f"the copy of the notes cannot be written to {root}: {error.strerror}") from error


def _remove(folder: Path) -> None:
    """Let the daemon forget the copy, then delete it; says what could not be done."""
    root = str(folder / _NOTES)
    try:
        _forget(root)
    except (Unreachable, RpcError) as error:
        common.note(f"memd could not forget the copy ({error}): memctl workspaces remove {root}")
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        common.note(f"{folder} could not be deleted; it holds a copy of your notes: rm -r {folder}")


def _forget(root: str) -> None:
    """Remove the workspace at *root*, if it is one; through another daemon where this one is just dying."""
    for last in (False, False, True):
        try:
            # A connection of its own: what was interrupted has closed its one in the middle of an answer.
            with common.daemon() as client:
                listed = client.call("workspace.list", {}, timeout_s=REMOVE_TIMEOUT_S)["workspaces"]
                if any(known["root"] == root for known in listed):
                    client.call("workspace.remove", {"path": root}, timeout_s=REMOVE_TIMEOUT_S)
                return
        except Unreachable:
            if last:
                raise
            time.sleep(DYING_S)


@contextlib.contextmanager
def _ending_orderly() -> Iterator[None]:
    """Let a signal that would end the process at once end it as Ctrl-C does, with all that is cleaned up."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)  # as shells report it

    # Under nohup a hang-up is passed over, and stays so.
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    with _handled_by(leave, numbers):
        yield


def _undisturbed() -> contextlib.AbstractContextManager[None]:
    """Pass over Ctrl-C for the moments in which it would leave a copy behind."""
    # Not SIG_IGN, which a daemon that is started meanwhile would inherit.
    return _handled_by(lambda _number, _frame: None, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


@contextlib.contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None], numbers: Iterable[signal.Signals]
) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return to_json(value)  # JSON's texts, numbers and truth values are TOML's

"""The program `python -m memd.imports`, started by `memctl import`: imports once, or until it is ended.

Output and exit follow memd.process; with --follow, `imported` has the report of each further import, and
`again` ends the process: a place of the client's was made or replaced, to which its sandbox has no right.
"""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memd import process
from memd.process import Send

if TYPE_CHECKING:
    from memd.imports.run import Order, Outcomes
    from memd.records import SandboxLimit

_TELL_EVERY_S = 0.2  # of progress; more often would not be visible


def main() -> int:
    """Import; return 0 even if the last line reports an error."""
    with process.running(watches_parent=False) as send:  # before all slow imports
        _import(_arguments(), send)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m memd.imports", description=__doc__, allow_abbrev=False)
    parser.add_argument("workspace")
    parser.add_argument("client")
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--project", type=Path)
    for name in ("with-tools", "again", "dry-run", "follow", "memory", "all-projects", "subagents"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


def _import(args: argparse.Namespace, send: Send) -> None:
    from memctl import paths  # noqa: PLC0415 - a signal during these imports must already be handled
    from memd import registry  # noqa: PLC0415
    from memd.imports import run  # noqa: PLC0415

    roots = registry.Registry(paths.state_dir()).known()
    order = run.Order(
        registry.choose(args.workspace, roots),
        args.client,
        tuple(args.paths),
        project=args.project,
        memory=args.memory,
        all_projects=args.all_projects,
        workspaces=tuple(roots),
        with_tools=args.with_tools,
        subagents=args.subagents,
        again=args.again,
        dry_run=args.dry_run,
    )
    began = _inodes(order)
    sandbox = _restrict(order)
    process.leave_without_parent()
    seen = run.stamps(order)  # before the files are read: later changes are imported again
    done = run.run(order, run.sources(order), _progress(send))
    found = {"workspace": str(order.root), "sandbox": sandbox, **run.report(order, done)}
    if args.follow:
        send({"imported": found})
        left_alone: set[str] = set()

        def told(later: "Outcomes") -> None:  # what wrote something, or newly left something alone
            now = {one["path"] for one in later.kept}
            if any(later.paths.values()) or now - left_alone:
                send({"imported": run.report(order, later)})
            left_alone.update(now)

        run.follow(order, seen, told, lambda: _inodes(order).items() <= began.items())
        send({"again": True})
    else:
        send({"report": found})


def _restrict(order: "Order") -> list["SandboxLimit"]:
    """Let this process read only the client's files, and write only the client's part of the archive."""
    from memd.imports import claude_code  # noqa: PLC0415 - as above
    from memd.imports.archive import FOLDER, Archive  # noqa: PLC0415
    from memd.imports.run import places, sources  # noqa: PLC0415
    from memd.sandbox import restrict  # noqa: PLC0415

    # A place that does not exist gets no right: the folder above it holds what the client shows to nobody.
    read = [place for place in places(order) if place.exists()]
    beside = [one for place in read if order.client == "claude-code" for one in claude_code.siblings(place)]
    own = order.root / FOLDER / order.folder
    sources(order)  # without any, nothing is made
    if not order.dry_run:
        Archive(order.root, order.folder, dry_run=False, again=False).close()  # makes its folders
    return restrict(
        read=[own, *read, *beside],
        listed=[order.root, order.root / "memory", *{one.parent for one in beside}],
        write=[] if order.dry_run else [own],
    )


def _inodes(order: "Order") -> dict[Path, tuple[int, int]]:
    """Return what is at the client's places now; the sandbox holds rights to just that."""
    from memd.imports.run import places  # noqa: PLC0415 - as above

    found = {}
    for place in places(order):
        with suppress(OSError):
            status = place.stat()
            found[place] = (status.st_dev, status.st_ino)
    return found


def _progress(send: Send) -> Callable[[int, int], None]:
    next_s = time.monotonic() + _TELL_EVERY_S

    def told(done_bytes: int, total_bytes: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + _TELL_EVERY_S
            send({"progress": {"stage": "import", "done": done_bytes >> 10, "total": total_bytes >> 10}})

    return told


if __name__ == "__main__":
    sys.exit(main())

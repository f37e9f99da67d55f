"""The check of one workspace: compares index and folder, on request and once a day, and repairs."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from memd.entries.entry import clear_leftovers
from memd.entries.place import leftovers
from memd.errors import DeadlineError, MemdError
from memd.index import check
from memd.index.check import Finding, Repair
from memd.index.writer import CHECKED_AT
from memd.records import ProbeOutcome
from memd.workspace.context import ReopenReason
from memd.workspace.open import OpenWorkspace
from memd.workspace.threads import FolderWriter, Run

log = structlog.get_logger()

# About files: one that is saved during the walk looks wrong, but only once; only real faults are found twice.
# A file of vectors exists for a moment before the database names it.
OF_FILES = frozenset({"stale", "unindexed", "absent", "stray", "unfinished"})
REPAIR_BUDGET_S = 0.05  # of the writer thread at a time
REPORT_EVERY_S = 1.0
SETTLED_S = 60.0  # how long to wait for pending saves before files are compared

Report = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class WorkspaceCheck:
    """Checks one workspace."""

    opened: OpenWorkspace
    folders: FolderWriter
    apart: Run  # runs work in a thread that nobody else waits for
    report: Report | None = None
    counts: Counter[str] = field(default_factory=Counter)

    async def compare(self, *, repair: bool) -> dict[Finding, bool]:
        """Return each fault, and whether it is repaired: with *repair*, unless only a new index would help.

        Raises:
            DeadlineError: so much was saved meanwhile that the snapshot being checked had to be given up.
        """
        found = await self._find()
        if not OF_FILES.isdisjoint(finding.kind for finding in found):
            again = {(finding.kind, finding.names) for finding in await self._find()}
            found = [one for one in found if one.kind not in OF_FILES or (one.kind, one.names) in again]
        repaired = await self._mend(found) if repair else set()
        left = [finding for finding in found if finding not in repaired]
        detail = "; ".join(finding.text for finding in left[:3])
        self.opened.last_check = ProbeOutcome(ok=not left, at=time.time(), detail=detail)
        await self.opened.threads.write(self.opened.sync.index.writer.store, CHECKED_AT, int(time.time()))
        return {finding: finding in repaired for finding in found}

    async def _find(self) -> list[Finding]:
        sync = self.opened.sync
        if not await sync.synced(SETTLED_S):
            await sync.scanned()
        reporting = asyncio.create_task(self._keep_reporting()) if self.report else None
        self.counts.clear()
        rules = sync.scanner.rules if sync.place.is_there() else None
        try:
            found: list[Finding] = await self.apart(
                lambda: list(
                    check.findings(
                        sync.index,
                        root=sync.place.root if rules else None,
                        rules=rules,
                        skipped=frozenset(sync.scanner.skipped),
                        expired=sync.index.log_is_long,
                        counts=self.counts,
                    )
                )
            )
        except DeadlineError as error:
            raise DeadlineError(
                "the check was cancelled because too much was saved meanwhile: try later"
            ) from error
        finally:
            if reporting is not None:
                reporting.cancel()
        left = await self.apart(leftovers, sync.place.root)
        return found + [
            Finding("unfinished", f"{path} is left over from a killed write", (path,)) for path in left
        ]

    async def _keep_reporting(self) -> None:
        snapshot = self.opened.sync.index.snapshot
        total = snapshot.columns.count + len(snapshot.sources)
        while True:
            assert self.report is not None
            done = self.counts["chunks"] + self.counts["files"]
            self.report({"stage": "check", "done": min(done, total), "total": total})
            await asyncio.sleep(REPORT_EVERY_S)

    async def _mend(self, found: list[Finding]) -> set[Finding]:
        if any(finding.kind == "database" for finding in found):
            self.opened.sync.context.reopen(ReopenReason.DAMAGED)  # replaces everything else in it, too
            return {finding for finding in found if finding.kind != "foreign"}
        if any(finding.kind == "unfinished" for finding in found):
            await self.folders.run(self.opened.sync.place.root, clear_leftovers, self.opened.sync.place.root)
        repair = Repair(self.opened.sync.index, found)
        while not await self.opened.threads.write(repair.step, REPAIR_BUDGET_S):
            if self.report is not None:
                self.report({"stage": "repair", "done": len(repair.mended), "total": len(found)})
        self.opened.sync.index_loop.hint(repair.paths)
        await self.opened.sync.vectors.count()
        self.opened.sync.vectors.wake()
        with suppress(MemdError):  # if the model fails now, the embedding is done later
            await self.opened.sync.caught_up()
        if repair.mended:
            log.warning("index_mended", findings=len(repair.mended))
        return repair.mended

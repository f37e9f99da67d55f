"""The process that is killed: works on an index and writes down each step after it was acknowledged.

``python -m faults.worker`` imports everything once and then forks a child for each line it is told: so a
child begins within milliseconds.
"""

import dataclasses
import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from faults import bugs
from faults.site import SHORT_LOG_PAGES, Site
from faults.steps import Truth, next_step


def main() -> None:
    """Fork one child a line of standard input; say its number, and in the end how it ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(2, 1)  # what is logged is none of our answers
            _work(json.loads(line))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _work(job: dict[str, Any]) -> None:
    """Do step after step, until somebody kills us. Never returns."""
    try:
        with ExitStack() as planted:
            if job["bug"]:
                planted.enter_context(bugs.planted(job["bug"]))
            _do_steps(job)
    except BaseException:  # noqa: BLE001 - a child must not come back into the loop above
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    os._exit(1)


def _do_steps(job: dict[str, Any]) -> None:
    truth = Truth(job["live"], {path: (recipe, since) for path, (recipe, since) in job["gone"].items()})
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    number = job["first"]
    site = Site(Path(job["folder"]), log_pages=SHORT_LOG_PAGES)
    while True:
        _acknowledge(log, number - 1, site)
        step = next_step(job["seed"], number, truth)
        site.do(step)
        truth = truth.after(step)
        number += 1


def _acknowledge(log: int, number: int, site: Site) -> None:
    line = json.dumps({"number": number} | dataclasses.asdict(site.figures))
    os.write(log, line.encode() + b"\n")


if __name__ == "__main__":
    main()

"""Crashes while an index becomes another one: a model changes, or the tables do.

The daemon is killed at random moments of the change, started, killed again. While only the model changes the
old index answers from the first moment on; one with the tables of another release is built anew.
"""

import random
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from faults import meanings
from faults.household import Hit, Household, Query, household

NOTES = 90  # a second of embedding
LONGEST_S = 1.4  # that a daemon lives; half of it passes before it can do something
KILLS_A_CHANGE = 5
OTHER_RELEASE = 1  # a version of the tables that is not today's


@dataclass(slots=True)
class Report:
    """What was found."""

    kills: int = 0
    halfway: int = 0  # starts that found a change that had begun
    flaws: list[str] = field(default_factory=list)


def models(folder: Path, *, kills: int, seed: int, notes: int = NOTES) -> Report:
    """Change the model back and forth, and kill the daemon meanwhile."""
    chance = random.Random(seed)
    report = Report()
    with meanings.server() as address, household(folder, notes=notes) as house:
        other = f'provider = "ollama"\nmodel = "nomic-embed-text"\naddress = "{address}"\n'
        house.allow(address)
        rights = {"": house.right, other: _answers_with(house, other)}
        wanted = ""
        while report.kills < kills:
            house.configure(wanted)
            house.right = rights[wanted]
            _kill_often(house, min(KILLS_A_CHANGE, kills - report.kills), chance, report)
            house.daemon.start()
            report.halfway += house.facts["building"] is not None
            flaws = [*house.said_at_once(), *_not_found(house), *house.flaws()]
            report.flaws += [f"kill {report.kills}: {flaw}" for flaw in flaws]
            house.daemon.stop()
            wanted = other if wanted == "" else ""
    return report


def tables(folder: Path, *, kills: int, seed: int, notes: int = NOTES) -> Report:
    """Start with the tables of another release, and kill the daemon while it builds the index anew."""
    chance = random.Random(seed)
    report = Report()
    with household(folder, notes=notes) as house:
        while report.kills < kills:
            house.restore()
            with closing(apsw.Connection(str(house.index_dir / "index.db"))) as database:
                database.pragma("user_version", OTHER_RELEASE)
            _kill_often(house, min(KILLS_A_CHANGE, kills - report.kills), chance, report)
            house.daemon.start()
            facts = house.facts
            report.halfway += bool(facts["pending_files"] or facts["pending_vectors"])
            flaws = [*house.said_at_once(), *house.flaws()]
            report.flaws += [f"kill {report.kills}: {flaw}" for flaw in flaws]
    return report


def _answers_with(house: Household, config: str) -> dict[Query, list[Hit]]:
    """Return what it answers with another configuration, where nobody kills it."""
    house.configure(config)
    house.daemon.start()
    house.settle()
    found = house.answers()
    house.daemon.stop()
    return found


def _kill_often(house: Household, kills: int, chance: random.Random, report: Report) -> None:
    for _ in range(kills):
        house.launch()
        time.sleep(chance.uniform(0.0, LONGEST_S))
        house.kill()
        report.kills += 1


def _not_found(house: Household) -> Iterator[str]:
    """Ask for words at once: the old index has them."""
    for query, right in house.right.items():
        if query[1] == "keyword" and [hit[0] for hit in house.ask(query)] != [hit[0] for hit in right]:
            yield f"the old index does not answer {query}"

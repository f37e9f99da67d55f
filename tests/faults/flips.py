"""One flipped bit in a file of a daemon: it starts, and a day later at the latest it is well again.

A bit in the matrix is noticed by the scrub after the start, or by a query before that. One in the database
is noticed at the start, by a query or by the daily check, or does no harm.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from patience import PATIENCE

from faults.household import NOTES, Household

NOTICED_S = 3.0  # what is not well after so long waits for the daily check
SCRUBBED_S = 20.0 * PATIENCE  # of a loaded machine; usually three seconds
ROW_BYTES = 384 * 4  # of the shipped model; a note of the household has at least one row


@dataclass(slots=True)
class Flips:
    """What came of them."""

    outcomes: Counter[str] = field(default_factory=Counter)
    flaws: list[str] = field(default_factory=list)


def loop(house: Household, *, flips: int, seed: int) -> Flips:
    """Flip so many bits in the matrix and in the database each, one at a time in an index that was well."""
    chance = random.Random(seed)
    found = Flips()
    for _ in range(flips):
        house.restore()
        bit = _flip(house.matrix, NOTES * ROW_BYTES, chance)
        found.flaws += [f"bit {bit} of the matrix: {flaw}" for flaw in _after_matrix(house, found.outcomes)]
    for _ in range(flips):
        house.restore()
        database = house.index_dir / "index.db"
        bit = _flip(database, database.stat().st_size, chance)
        found.flaws += [
            f"bit {bit} of the database: {flaw}" for flaw in _after_database(house, found.outcomes)
        ]
    return found


def _flip(path: Path, size_bytes: int, chance: random.Random) -> int:
    bit = chance.randrange(size_bytes * 8)
    with path.open("r+b") as file:
        file.seek(bit // 8)
        [byte] = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ (1 << bit % 8)]))
    return bit


def _after_matrix(house: Household, outcomes: Counter[str]) -> Iterator[str]:
    house.daemon.start()
    yield from house.said_at_once()
    stop = time.monotonic() + SCRUBBED_S
    while not (rows := house.facts["damaged_rows"]) and time.monotonic() < stop:
        time.sleep(0.05)
    house.settle()
    if rows != 1:
        yield f"{rows} rows were found damaged"
    yield from house.flaws()
    outcomes["matrix: found after the start, one row embedded again"] += rows == 1


def _after_database(house: Household, outcomes: Counter[str]) -> Iterator[str]:
    try:
        house.daemon.start()
    except AssertionError as error:
        yield f"it does not start: {error}"
        return
    false = list(house.said_at_once())
    wrong = list(house.said_at_last(NOTICED_S))
    was_rebuilt = any(house.daemon.state.glob("*.damaged-*"))
    found = house.check()
    if was_rebuilt:
        outcomes["database: found at the start or by a query, rebuilt"] += 1
    elif found:
        how = "wrong answers until then" if wrong or false else "no answer was wrong"
        how = "it stood still until then" if any("settle" in text for text in wrong) else how
        outcomes[f"database: found by the check, {how}"] += 1
    else:
        outcomes["database: harmless"] += 1
    yield from house.flaws()

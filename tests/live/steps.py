"""Steps that are done to a workspace and to its daemon, drawn from a seed. Pure.

Places are few, so that steps meet each other; a step whose places do not fit does nothing, so that any part
of a sequence is a sequence too. Of the kinds each seed leaves some out: a restart in every sequence would
hide what only a long watch gets wrong.
"""

import random
from dataclasses import dataclass

# A name with ".md" behind for a folder, names that are hard, and two that are never searched.
FOLDERS = ("a", "b", "c", "d.md", "f\u00fcr", "two\nlines", "no-\udcff", ".hidden")
FILES = (
    "k.md", "l.md", "m.md", "n.markdown", "cafe\u0301.md", "caf\u00e9.md", "long" * 60 + ".md",
    "bad-\udcff.md", "o.txt", "p.md~", ".q.md",
)  # fmt: skip
HARD_SHARE = 0.15  # of the names that are drawn, beyond the first few
EASY = 3

# How often each is done, where it is done at all.
SAVES = {
    "save": 12, "append": 6, "truncate": 2, "save_over": 5, "save_as_vim": 5, "save_as_emacs": 3, "sed": 2,
    "deep": 8, "copy": 3,
}  # fmt: skip
MOVES = {"move": 10, "move_file": 8, "move_out": 4, "move_in": 5, "remove": 6, "delete": 6, "recreate": 5}
SPECIAL = {
    "link": 3, "point": 3, "point_out": 1, "swap": 2, "protect": 2, "protect_file": 2,
    "unprotect": 6, "ignore": 2, "unignore": 3, "own_ignore": 1,
    "foreign": 1, "hold": 3, "release": 4, "commit": 1, "checkout": 2, "stash": 1, "pop": 2,
}  # fmt: skip
DAEMON = {
    "stand": 1, "go": 2, "terminate": 0.15, "kill": 0.3, "rebuild": 0.1, "purge": 0.3, "away": 0.3, "back": 1,
}  # fmt: skip
TOGETHER = (  # left out or done as one
    {"link"}, {"point", "point_out"}, {"swap"}, {"protect", "protect_file", "unprotect"},
    {"ignore", "unignore", "own_ignore"},
    {"foreign"}, {"hold", "release"}, {"commit", "checkout", "stash", "pop"}, {"stand", "go"},
    {"terminate", "kill"}, {"rebuild"}, {"purge"}, {"away", "back"}, {"recreate"}, {"copy"},
)  # fmt: skip
DONE_SHARE = 0.4  # of the above, by each seed
CHECKS = 0.02  # of all steps
PLAIN_CHECKS = 0.1  # where a hint may be lost: before the same file is saved again
PAUSES_MS = (0, 0, 0, 0, 0, 0, 1, 3, 15, 40)  # after a step; a hand is slower, a tool is not


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do."""

    number: int  # what it writes has the word of this number
    kind: str
    places: tuple[str, ...]  # relative to the root: a folder, a file, another folder, another file
    pause_ms: int

    def __str__(self) -> str:
        return f"{self.number}: {self.kind} {' '.join(map(ascii, self.places))} +{self.pause_ms} ms"


def word(number: int) -> str:
    """Return the word of a step: no other has it, or a part of it."""
    return f"q{number}z"


def steps(seed: int, count: int, *, plain: bool = False) -> list[Step]:
    """Return so many steps, the last one a check; after *plain* ones memd scans for no other reason."""
    chance = random.Random(seed)
    kinds = SAVES | MOVES if plain else _kinds(chance)
    kinds = kinds | {"check": sum(kinds.values()) * (PLAIN_CHECKS if plain else CHECKS)}
    drawn = chance.choices(list(kinds), list(kinds.values()), k=count - 1)
    return [
        Step(number, kind, _places(chance), chance.choice(PAUSES_MS)) for number, kind in enumerate(drawn)
    ] + [Step(count - 1, "check", (), 0)]


def _kinds(chance: random.Random) -> dict[str, float]:
    kinds = SAVES | MOVES | SPECIAL | DAEMON
    for group in TOGETHER:
        if chance.random() > DONE_SHARE:
            kinds = {kind: weight for kind, weight in kinds.items() if kind not in group}
    return kinds


def _places(chance: random.Random) -> tuple[str, ...]:
    folders = [_folder(chance), _folder(chance)]
    return tuple(place for folder in folders for place in (folder, f"{folder}/{_name(chance, FILES)}"))


def _folder(chance: random.Random) -> str:
    return "/".join(_name(chance, FOLDERS) for _ in range(chance.choice([1, 1, 1, 2, 2, 3])))


def _name(chance: random.Random, names: tuple[str, ...]) -> str:
    return chance.choice(names[EASY:] if chance.random() < HARD_SHARE else names[:EASY])

"""Steps that are done to an index while something breaks, and what it must hold after each.

Pure. A step follows from a seed, its number and what the index holds, so that whoever knows how far another
process came knows what it did. A text is named by a recipe, a few characters long.
"""

import functools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

WORDS = [f"{first}{last}" for first in ("bel", "dor", "fin", "gal", "hum", "kar") for last in "aeiou"]
KEPT_STEPS = 12  # so long is a deleted note kept: a purge takes the older ones
MOST_NOTES = 40  # that the steps add; then they edit and delete

# How often each is done. Many embeds, so that a model that is built beside is complete now and then.
KINDS = {
    "put": 6, "edit": 6, "delete": 4, "restore": 3, "embed": 14, "purge": 2, "compact": 5, "switch": 2,
    "finish": 4, "checkpoint": 1, "reopen": 1, "touch": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do; all of its notes in one commit."""

    number: int
    kind: str
    notes: Mapping[str, str | None]  # path → recipe of the text that is saved; None: it is deleted


@dataclass(frozen=True, slots=True)
class Truth:
    """What an index must hold."""

    live: Mapping[str, str]  # path → recipe
    gone: Mapping[str, tuple[str, int]]  # path → recipe, and the number of the step that deleted it

    def after(self, step: Step) -> "Truth":
        """Return what it must hold when *step* is done."""
        live, gone = dict(self.live), dict(self.gone)
        for path, recipe in step.notes.items():
            if recipe is not None:
                live[path] = recipe
                gone.pop(path, None)
            elif path in live:
                gone[path] = (live.pop(path), step.number)
        if step.kind == "purge":
            gone = {path: one for path, one in gone.items() if one[1] > step.number - KEPT_STEPS}
        return replace(self, live=live, gone=gone)


NOTHING = Truth({}, {})


def next_step(seed: int, number: int, truth: Truth) -> Step:
    """Return the step of that number, for an index that holds *truth*."""
    chance = random.Random(f"{seed}:{number}")
    [kind] = chance.choices(list(KINDS), list(KINDS.values()))
    made = _NOTES.get(kind)
    return Step(number, kind, made(chance, number, truth) if made else {})


@functools.cache
def text_of(recipe: str) -> str:
    """Return the text that a recipe names: equal recipes, equal texts; every other has a word of its own."""
    chance = random.Random(recipe)
    paragraphs = chance.choice([1, 1, 2, 6])
    body = "\n\n".join(" ".join(chance.choices(WORDS, k=60)) for _ in range(paragraphs))
    return f"# About {chance.choice(WORDS)}\n\n{word_of(recipe)} {body}\n"


def word_of(recipe: str) -> str:
    """Return the word that only this text has."""
    return "only" + recipe.replace(".", "x")


def base(notes: int) -> Truth:
    """Return an index of so many notes, about two chunks each, to begin with."""
    return Truth({f"base/{number // 100}/{number}.md": f"0.{number}" for number in range(notes)}, {})


def _put(chance: random.Random, number: int, truth: Truth) -> dict[str, str | None]:
    added = [path for path in truth.live if not path.startswith("base/")]
    if len(added) >= MOST_NOTES:
        return _delete(chance, number, truth)
    notes: dict[str, str | None] = {
        f"f{number % 5}/{number}-{count}.md": f"{number}.{count}" for count in range(chance.randint(1, 3))
    }
    if truth.live and chance.random() < 0.3:  # an equal text, whose vector is there already
        notes[f"copy/{number}.md"] = truth.live[_some(chance, truth.live, 1)[0]]
    return notes


def _edit(chance: random.Random, number: int, truth: Truth) -> dict[str, str | None]:
    return {path: f"{number}.{count}" for count, path in enumerate(_some(chance, truth.live, 3))}


def _delete(chance: random.Random, _: int, truth: Truth) -> dict[str, str | None]:
    return dict.fromkeys(_some(chance, truth.live, 3))


def _restore(chance: random.Random, number: int, truth: Truth) -> dict[str, str | None]:
    paths = _some(chance, truth.gone, 2)
    changed = f"{number}.0" if chance.random() < 0.2 else None  # it comes back with another text
    return {path: changed or truth.gone[path][0] for path in paths}


def _touch(chance: random.Random, _: int, truth: Truth) -> dict[str, str | None]:
    return {path: truth.live[path] for path in _some(chance, truth.live, 2)}


def _some(chance: random.Random, paths: Mapping[str, object], most: int) -> list[str]:
    known = list(paths)  # in the order in which they came: the same in every process
    return chance.sample(known, min(len(known), chance.randint(1, most)))


_NOTES: dict[str, Callable[[random.Random, int, Truth], dict[str, str | None]]] = {
    "put": _put, "edit": _edit, "delete": _delete, "restore": _restore, "touch": _touch,
}  # fmt: skip

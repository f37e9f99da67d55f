"""Generated notes, for benchmarks in which the words do not matter; they depend only on the seed.

About 1 kB of words each, distributed by Zipf's law, so that the terms of an index resemble those of real
notes.
"""

import random
from collections.abc import Iterator
from pathlib import Path

SEED = 7
WORDS_A_NOTE = 150  # about 1 kB
VOCABULARY = 20_000
LETTERS = "etaoinshrdlucmfwypvbgkqjxz"


def notes(count: int, seed: int = SEED, words: int = WORDS_A_NOTE) -> Iterator[str]:
    """Yield texts of about 1 kB, the same for a seed."""
    chance = random.Random(seed)
    known = [word(number) for number in range(VOCABULARY)]
    weights = [1 / (rank + 1) for rank in range(VOCABULARY)]
    for number in range(count):
        yield f"# Note {number}\n\n{' '.join(chance.choices(known, weights, k=words))}\n"


def write(folder: Path, texts: Iterator[str], *, name: str = "note") -> int:
    """Write one file a text, a hundred a folder; return how many."""
    count = 0
    for count, text in enumerate(texts, 1):
        path = folder / f"{name}{count // 100:04}" / f"{count}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return count


def word(number: int) -> str:
    """Return the word of that rank."""
    found = ""
    while number >= 0:
        found = LETTERS[number % 26] + found
        number = number // 26 - 1
    return f"{found}en" if len(found) < 3 else found

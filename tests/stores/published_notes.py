"""Published sources for tests of stores: random words, hostile names, vectors of a word-hash."""

import hashlib
import random
from datetime import date, timedelta

import numpy as np

from memd.stores.store import PublishedChunk, PublishedSource, PublishedWorkspace, SourceKey

DIMENSIONS = 16
MODEL = "word-hash"
# What breaks expressions that are written without care.
HOSTILE = [
    'quo"te', "apo'strophe", "back\\slash", 'both\\"', "per%cent", "under_score", "{brace}",
    "a' or 1 == 1 or '", 'x" or key != "', "new\nline", "tab\t", "é", "e\u0301", "日本", "😀", "null", "a]b[",
    "*", "?", "in", "like",
]  # fmt: skip
WORDS = [f"word{number}" for number in range(60)] + [
    "searching", "searched", "searches", "inhibits", "inhibition", "the", "and", "was", "und", "der", "ich",
    "日本", "本語", "語", "日曜", "曜", "naive", "20", "3.11",
]  # fmt: skip


def workspace(name: str = "one", model_id: str = MODEL) -> PublishedWorkspace:
    return PublishedWorkspace(f"id of {name}", name, "machine", "owner", model_id)


def vector_of(words: str) -> bytes:
    total = np.zeros(DIMENSIONS, np.float32)
    for word in words.split():
        seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big")
        total += np.random.default_rng(seed).standard_normal(DIMENSIONS).astype(np.float32)
    return (total / np.linalg.norm(total)).astype("<f4").tobytes()


def chunk(ordinal: int, words: str, *, has_vector: bool = True, text: str = "") -> PublishedChunk:
    digest = hashlib.blake2b(words.encode(), digest_size=16).digest()
    return PublishedChunk(
        ordinal, ordinal + 1, ordinal + 1, 0, "", text or words, "", words, len(words.split()), digest, b"",
        "", "", vector_of(words) if has_vector else None,
    )  # fmt: skip


def source(
    path: str,
    *chunks: PublishedChunk,
    workspace: str = "id of one",
    revision: int = 1,
    tags: tuple[str, ...] = (),
    fields: tuple[tuple[str, str], ...] = (),
    day: str = "2026-05-01",
    mtime_ns: int = 0,
    names: tuple[tuple[str, str], ...] = (),
    links: tuple[tuple[str, str, str, int | None], ...] = (),
    front_matter: str = "{}",
) -> PublishedSource:
    return PublishedSource(
        SourceKey(workspace, path), revision, hashlib.blake2b(path.encode(), digest_size=16).digest(), path,
        tags, day, "name", "human", front_matter, "", False, False, mtime_ns, names, links, fields, chunks,
    )  # fmt: skip


def random_sources(
    seed: int, count: int, *, workspace: str = "id of one", revision: int = 1
) -> list[PublishedSource]:
    """Return sources with one to five chunks; every value is one that a user may have typed."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        folder = rng.choice(["", "daily/", "projects/alpha/", f"{rng.choice(HOSTILE)}/"])
        chunks = tuple(
            chunk(n, " ".join(rng.choices(WORDS, k=rng.randint(3, 40))), has_vector=rng.random() > 0.2)
            for n in range(rng.randint(1, 5))
        )
        tags = tuple(rng.sample(["project", "project/alpha", "Idea", *HOSTILE], rng.randint(0, 3)))
        fields = tuple(
            (key, rng.choice([*values, *HOSTILE]))
            for key, values in (
                ("status", ["draft", "Draft", "done"]),
                ("priority", ["1", "2", "2.0", "10"]),
                ("due", ["2026-05-01", "2026-05-31", "2026-06-01", "2025"]),
            )
            if rng.random() > 0.4
        )
        day = date(2026, 5, 1) - timedelta(rng.randint(0, 900))
        found.append(
            source(
                f"{folder}{number} {rng.choice(HOSTILE).replace('/', '')}.md", *chunks, workspace=workspace,
                revision=revision, tags=tags, fields=fields, day=day.isoformat(), mtime_ns=number,
            )
        )  # fmt: skip
    return found

"""Support for tests: a word-hash embedder, and an index over real files, driven by hand."""

import array
import hashlib
import math
import os
import re
import shutil
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import apsw

from memd.config import WorkspaceConfig
from memd.embedding.queue import EmbeddingQueue
from memd.index import check
from memd.index.check import Scrub
from memd.index.index import DATABASE, Index
from memd.index.indexer import Compared, Indexer
from memd.records import SHIPPED_COSINES, ChunkLimits, CosineScale
from memd.registry import Workspace
from memd.search.explanation import AnswerExplanation, Explained
from memd.search.identifiers import spelled
from memd.search.query import parse
from memd.search.score import PreparedQuery
from memd.search.search import Answer, search
from memd.sources.scan import Rules
from memd.workspace.context import DaemonContext, ReopenReason, WorkspaceContext, config_stamp
from memd.workspace.threads import Disk, Threads

# `.ci/long` sets it: whole tables, and as many random examples as find what is rare.
LONG = "MEMD_LONG" in os.environ
WORD = re.compile(r"\w+|[^\w\s]")
DAY = date(2026, 6, 1)


def many(count: int) -> int:
    """Return how many examples to try: *count* in the long form, a quarter of it in each check."""
    return count if LONG else -(-count // 4)


class WordTokenizer:
    """Words as pieces: stands in where the model's own pieces are not the point."""

    parts_at_spaces = True

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in WORD.finditer(text)]

    def count(self, text: str) -> int:
        return len(WORD.findall(text))


class WordHashEmbedder:
    """Texts that share words have close vectors: stands in where meaning is not the point."""

    model_id = "word-hash"
    dim = 64
    max_tokens = 254
    scripts: frozenset[str] | None = None
    cosines: CosineScale | None = SHIPPED_COSINES
    remote = False
    tokenizer = WordTokenizer()

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        return [self.embed_query(text) for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> list[bytes]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        vector = [0.0] * self.dim
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            vector[digest[0] % self.dim] += 1 if digest[1] % 2 else -1
            vector[digest[2] % self.dim] += 1 if digest[3] % 2 else -1
        length = math.sqrt(sum(value * value for value in vector))
        if not length:
            vector[0] = length = 1.0
        return array.array("f", [value / length for value in vector]).tobytes()

    def close(self) -> None:
        pass


class OtherHashEmbedder(WordHashEmbedder):
    """Another model: other vectors, of another length."""

    model_id = "other-hash"
    dim = 32


class LatinEmbedder(WordHashEmbedder):
    """A model that reads Latin letters."""

    scripts = frozenset({"Latin"})


class Notes:
    """A folder of notes with its index, driven by hand: no daemon, no watcher."""

    def __init__(
        self, folder: Path, *, embedder: WordHashEmbedder | None = None, state: str = "state"
    ) -> None:
        self.root = folder / "notes"
        self.root.mkdir(exist_ok=True)  # a test may open again what another process wrote
        self.state = folder / state
        self.embedder = embedder or WordHashEmbedder()
        self.open()

    def open(self) -> None:
        self.index = Index(self.state)
        self.indexer = Indexer(
            self.index, self.root, tokenizer=self.embedder.tokenizer, limits=ChunkLimits(200, 50, 254)
        )
        self.indexer.begin()
        self.index.begin_model(
            self.embedder.model_id, self.embedder.dim, self.embedder.scripts, self.embedder.cosines
        )

    def findings(self, **settings: object) -> list[str]:
        """What the check finds, as "kind: text"."""
        return [f"{one.kind}: {one.text}" for one in check.findings(self.index, **settings)]

    def compared(self) -> Compared:
        return self.indexer.comparison(self.rules()).step(math.inf)

    def rules(self) -> Rules:
        return Rules.load(self.root, ("**/*.md",), ())

    def remove(self, *paths: str, at_s: int | None = None) -> None:
        for path in paths:
            (self.root / path).unlink()
        self.indexer.apply(list(paths), budget_s=60, at_s=at_s)

    def compact(self) -> None:
        while not self.index.compact(0.0):
            pass

    def scrub(self) -> int:
        """Compare every row with its checksum, as the daemon does; return how many were lost."""
        scrub = Scrub(self.index)
        assert scrub.step(math.inf)
        return scrub.forget()

    def damage(self, *statements: str) -> None:
        """Change the database while it is closed."""
        self.index.close()
        planted(self.state, *statements)
        self.open()

    def closed(self) -> list[str]:
        """Close the index; return what the check found before."""
        found = self.findings()
        self.index.close()
        return found

    def crashed(self, folder: Path, copy: Callable[[str, str], object] = shutil.copy2) -> "Notes":
        """Open what the disk holds now, as after kill -9, in another place; this one goes on.

        *copy* takes the notes there, of which a copy costs more than all else if there are hundreds.
        """
        shutil.copytree(self.root, folder / "notes", copy_function=copy)
        shutil.copytree(self.state, folder / "state")
        return Notes(folder, embedder=self.embedder)

    def switch(self, embedder: WordHashEmbedder) -> None:
        self.embedder = embedder
        self.index.begin_model(embedder.model_id, embedder.dim, embedder.scripts, embedder.cosines)

    def reopen(self) -> None:
        self.index.close()
        self.open()

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def save(self, notes: dict[str, str], *, embed: bool = True) -> None:
        for path, text in notes.items():
            self.write(path, text)
        self.indexer.apply(list(notes), budget_s=60)
        if embed:
            self.embed()

    def embed(self) -> None:
        while batch := self.index.pending(100):
            self.embed_some(batch)

    def embed_some(self, batch: dict[bytes, str]) -> None:
        vectors = self.embedder.embed_documents(list(batch.values()))
        self.indexer.embed(dict(zip(batch, vectors, strict=True)), model_id=self.embedder.model_id)

    def search(self, text: str, **changes: object) -> Answer:
        with self.index.view() as view:
            return search(view, self.request(text, **changes))

    def explained(self, text: str, **changes: object) -> tuple[Answer, AnswerExplanation, list[Explained]]:
        """Return an answer, its explanation, and those of its hits."""
        from memd.search.explain import explain  # needs numpy, which tests do without

        with self.index.view() as view:
            answer = search(view, self.request(text, **changes))
            return answer, *explain(view, answer)

    def request(
        self, text: str, *, mode: str = "keyword", limit: int = 10, **changes: object
    ) -> PreparedQuery:
        query = parse(text)
        settings: dict[str, object] = {
            "query": query,
            "query_vec": None if mode == "keyword" else self.embedder.embed_queries([query.text])[0],
            "model_id": self.embedder.model_id, "mode": mode, "fusion": "weighted", "weights": None,
            "half_life_days": 30.0, "decay_floor": 0.95, "min_score": 0.1, "limit": limit, "today": DAY,
            "alive": lambda path: (self.root / path).exists(), "expired": lambda: False,
            "spelled": () if mode == "keyword" else spelled(query.text, self.embedder.tokenizer),
        }  # fmt: skip
        return PreparedQuery(**{**settings, **changes})

    def found(self, text: str, **settings: object) -> list[str]:
        return [hit.source.path for hit in self.search(text, **settings).hits]


def planted(state: Path, *statements: str) -> None:
    """Change the database of an index, open or not, as a disk would: behind its back, against its rules."""
    database = apsw.Connection(str(state / DATABASE))
    database.execute("PRAGMA foreign_keys = 0; PRAGMA ignore_check_constraints = 1")
    for statement in statements:
        database.execute(statement)
    database.close()


def flip(path: Path, at: int, bits: int = 1) -> None:
    """Flip bits of one byte of a file, under whoever has it open."""
    with path.open("r+b") as stream:
        stream.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        [byte] = stream.read(1)
        stream.seek(-1, os.SEEK_CUR)
        stream.write(bytes([byte ^ bits]))


class InlineThreads:
    """Stands where work is handed to threads; does it at once."""

    async def write(self, work, *args):
        return work(*args)


class Owner:
    """Has opened a workspace; keeps what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def check(self, _root: Path) -> None:
        self.asked.append("check")

    def reopen_soon(self, _root: Path, reason: ReopenReason) -> None:
        self.asked.append(reason)


def context_of(
    notes: Notes,
    *,
    embedding: EmbeddingQueue | None = None,
    owner: Owner | None = None,
    threads: Threads | InlineThreads | None = None,
) -> WorkspaceContext:
    """Return what the loops of these notes' workspace share; nobody follows."""
    place = Workspace(notes.root, notes.state)
    return WorkspaceContext(
        daemon=DaemonContext(notes.root / "none.toml", threads=threads or InlineThreads(), process=None),
        owner=owner or Owner(),
        place=place,
        disk=Disk(notes.root, "disk"),
        config=WorkspaceConfig(),
        config_seen=config_stamp(place.config_path),
        index=notes.index,
        indexer=notes.indexer,
        small=None,
        large=None,
        embedding=embedding,
        sidecars=None,
    )

"""The temporary index of one measurement: built and searched in this process, without the daemon.

It starts as a copy of the workspace's own index if that is not being written, so that only differences are
read and embedded; the live database itself is never opened. Searches run the same code as in the daemon.

A private daemon was tried and is no better. It reads the model from the user's folder, so it could not
compare two models there; it would write sidecars into that folder and follow saves during the measurement;
and an index belongs to the path of its folder, so a copy of the notes would be embedded from the start.
"""

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from memd import registry
from memd.api import params
from memd.api.search import embedded, excludes_in, parsed
from memd.config import UserConfig, WorkspaceConfig, check_allowed, load_user_config, load_workspace_config
from memd.diaries import Diaries
from memd.embedding import MODEL_FAILED, Embedder, UnavailableError
from memd.embedding.cosines import measured
from memd.embedding.provider import Providers
from memd.embedding.queue import EmbeddingQueue
from memd.errors import (
    ConfigError,
    EmbedderError,
    IndexDamagedError,
    InvalidError,
    ModelMismatchError,
    StorageError,
)
from memd.index.index import DATABASE, FILE_NAMES, Index
from memd.index.indexer import Indexer
from memd.records import ChunkLimits, Tokenizer
from memd.registry import Registry, Workspace
from memd.search.search import Answer, begin, search
from memd.sources.ignore import diaries
from memd.sources.scan import Rules

COMMIT_S = 1.0  # of work per commit; no search waits for a single file
EMBED_BATCH = 64  # texts per commit: about a second of the shipped model on two cores
PURGE_BATCH = 1000  # sources per commit; arbitrary
# If files of an index changed so recently, a write may be in progress. File systems have clocks with steps of
# up to 10 ms, so that a change within a second before the first check is visible in the second check.
STILL_NS = 1_000_000_000
FIRST_BATCH = 16  # texts to estimate the remaining time from: they differ in length

Progress = Callable[[str, int, int], None]  # (stage, done, total)
Announce = Callable[[int, float], None]  # (chunks without a vector, seconds)


@dataclass(frozen=True, slots=True)
class Notes:
    """The workspace to measure."""

    place: Workspace
    config: WorkspaceConfig
    user: UserConfig
    rules: Rules

    @property
    def model_name(self) -> str:
        """The displayed name of its model; for a folder, the folder's name."""
        return "none" if self.config.provider == "none" else Path(self.config.model).name

    def with_model(self, folder: str) -> "Notes":
        """Return the same workspace with the model in *folder*, or with the shipped one by its name.

        Raises:
            InvalidError: it has that model already.
        """
        config = structs.replace(self.config, provider="onnx", model=folder)
        if config == self.config:
            raise InvalidError(f"{self.model_name} is already the model of {self.place.root}")
        return replace(self, config=config)


def registered(path: str, state_dir: Path, user_config_path: Path) -> Notes:
    """Return the registered workspace that contains *path*, with its settings.

    Raises:
        WorkspaceError: there is none.
        ConfigError: its configuration is invalid, or chooses something that it is not allowed to.
    """
    root = registry.choose(path, Registry(state_dir).known())
    place = registry.workspace_at(root, state_dir)
    config = load_workspace_config(place.config_path)
    user = load_user_config(user_config_path)
    check_allowed(place.config_path, config, user, user_config_path)
    try:
        return Notes(place, config, user, Rules.load(root, config.sources, config.ignore))
    except ConfigError as error:
        raise ConfigError(f"{place.config_path}: {error}") from error


@dataclass(slots=True)
class TemporaryIndex:
    """An index that can be brought up to date with a folder, and the model of its vectors."""

    workspace: Workspace
    config: WorkspaceConfig
    index: Index
    indexer: Indexer
    tokenizer: Tokenizer
    embedding: EmbeddingQueue | None
    diaries: Diaries

    @property
    def sources(self) -> frozenset[str]:
        """The paths of all sources."""
        return frozenset(source.path for source in self.index.snapshot.sources.values())

    def answer(self, question: params.SearchParams) -> Answer:
        """Return the hits, as the daemon does once its vocabulary is read."""
        with self.index.view() as view:
            view.vocabulary.read(view.reader, view.snapshot.columns.count, None)
            plain = parsed(self, question, lambda: False, excludes_in(view))
            prepared, words = begin(view, plain, self.tokenizer)
            return search(view, embedded(self, prepared, typed=plain.query.text), words)

    def update(self, rules: Rules, progress: Progress, announce: Announce) -> None:
        """Bring words and vectors up to date with the folder, whose sources *rules* select.

        *announce* is called before many vectors are computed, with the expected time.

        Raises:
            StorageError: the folder cannot be scanned, or the index cannot be written.
            EmbedderError: the model failed meanwhile. A model that is missing from the start is not an error:
                each answer reports it.
        """
        try:
            compared = self.indexer.comparison(rules).step(math.inf)
        except OSError as error:
            raise StorageError(f"{self.workspace.root} cannot be scanned: {error.strerror}") from error
        assert compared is not None  # there was no time limit
        paths = compared.differing
        total = len(paths)
        while paths:
            paths = paths[self.indexer.apply(paths, budget_s=COMMIT_S).handled :]
            progress("index", total - len(paths), total)
        # Sources that a copied index has but that are gone must neither be found nor correct a word.
        while self.index.purge(None, PURGE_BATCH):
            pass
        try:
            embedder = self.model()
        except UnavailableError:
            announce(0, 0.0)
            return
        self.index.begin_model(embedder.model_id, embedder.dim, embedder.scripts, embedder.cosines)
        if not self.index.matrices.cosines_of(embedder.model_id).is_measured:
            with suppress(EmbedderError):  # then only words make an answer strong
                self.index.learn_cosines(embedder.model_id, measured(embedder))
        waiting = self.index.unembedded_count()
        announce(waiting, waiting * self._embedding_s(embedder.model_id) if waiting else 0.0)
        self._embed(embedder, waiting, progress)

    def model(self) -> Embedder:
        """Return the model. Raises UnavailableError with the reason if it cannot be used."""
        if self.embedding is None:
            raise UnavailableError(MODEL_FAILED, "config.toml says provider = none: there is no model")
        return self.embedding.ready()

    def _embedding_s(self, model_id: str) -> float:
        """Embed some of the chunks, and return the seconds per chunk."""
        started = time.perf_counter()
        first = self.index.pending(FIRST_BATCH)
        if vectors := self._vectors(first, model_id):
            self.indexer.embed(vectors, model_id=model_id)
        return (time.perf_counter() - started) / len(first)

    def _embed(self, embedder: Embedder, total: int, progress: Progress) -> None:
        refused: set[bytes] = set()  # texts that the model rejects
        while True:
            found = self.index.pending(EMBED_BATCH + len(refused))
            batch = {digest: text for digest, text in found.items() if digest not in refused}
            if not batch:
                break
            vectors = self._vectors(batch, embedder.model_id)
            refused |= batch.keys() - vectors.keys()
            if vectors:
                self.indexer.embed(vectors, model_id=embedder.model_id)
            progress("embed", total - self.index.unembedded_count(), total)
        if self.index.building:
            self.index.finish_building(refused)

    def _vectors(self, batch: dict[bytes, str], model_id: str) -> dict[bytes, bytes]:
        """Return the vectors of texts, except those of texts that the model rejects."""
        assert self.embedding is not None
        try:
            found = self.embedding.embed_documents(list(batch.values()), model_id=model_id)
            return dict(zip(batch, found, strict=True))
        except ModelMismatchError:
            raise
        except EmbedderError:
            if len(batch) == 1 and self.embedding.state == "ready":
                return {}
            if self.embedding.state != "ready":
                raise
        # The model works, so one of the texts is the cause: only that one remains without a vector.
        parts = (self._vectors({digest: text}, model_id) for digest, text in batch.items())
        return {digest: vector for part in parts for digest, vector in part.items()}


@contextmanager
def temporary_index(
    notes: Notes, root: Path, folder: Path, *, fresh: bool = False
) -> Iterator[TemporaryIndex]:
    """Yield an index of the notes in *root*, or of an altered copy of them; `update` fills it.

    It is created in the private *folder*: empty if it shall be *fresh*, or from the workspace's own index.
    """
    config, providers = notes.config, Providers()
    with closing(providers):
        embedding = providers.queue_for(config, notes.user)  # it loads in the background
        tokenizer, max_tokens = providers.tokenizer_for(config, notes.user)
        live = notes.place.index_dir
        target = folder / live.name  # an index stores the name of its folder
        index = Index(target) if fresh else _index(live, target)
        indexer = Indexer(
            index,
            root,
            tokenizer=tokenizer,
            limits=ChunkLimits(config.chunk_words, config.chunk_overlap, max_tokens),
        )
        indexer.begin()
        with closing(index):
            yield TemporaryIndex(
                Workspace(root, index.folder), config, index, indexer, tokenizer, embedding,
                diaries(notes.place.root, config.decay),
            )  # fmt: skip


def _index(live: Path, folder: Path) -> Index:
    """Open a copy of the *live* index; an empty one if there is none, or it cannot be read."""
    if _copied(live, folder):
        try:
            return Index(folder)
        except IndexDamagedError:
            pass
    shutil.rmtree(folder, ignore_errors=True)
    return Index(folder)


def _copied(live: Path, folder: Path) -> bool:
    """Copy an index unless it is being written; return whether that succeeded.

    Reads only the bytes of its files: opening the database would take part in its locks.
    """
    try:
        before = _stamps(live)
        if not before or time.time_ns() - max(mtime_ns for mtime_ns, _ in before.values()) < STILL_NS:
            return False
        folder.mkdir(mode=0o700, parents=True)
        for name in before:
            shutil.copyfile(live / name, folder / name)
        return _stamps(live) == before
    except OSError:
        return False


def _stamps(live: Path) -> dict[str, tuple[int, int]]:
    """Return name → modification time and size of each file of the index."""
    found = {}
    with os.scandir(live) as entries:
        for entry in entries:
            is_of_index = entry.name in {DATABASE, f"{DATABASE}-wal"} or any(
                name.fullmatch(entry.name) for name in FILE_NAMES
            )
            if is_of_index and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found[entry.name] = (status.st_mtime_ns, status.st_size)
    return found if DATABASE in found else {}

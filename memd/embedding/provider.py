"""The providers of embeddings: from a configuration to one queue a model, shared by its workspaces."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from memd.config import BUILTIN_MODEL, WorkspaceConfig
from memd.embedding import Embedder, UnavailableError
from memd.embedding.model_folder import SHIPPED, ModelFolder, read_folder
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.queue import EmbeddingQueue
from memd.embedding.tokenizer import WordPieces

OLLAMA_TIMEOUT_S = 30.0  # of one request; a server that loads a large model first takes that long


Key = tuple[str, str, str]  # provider, model, address


class Providers:
    """The models in use. Not thread-safe: one thread opens workspaces."""

    def __init__(self) -> None:
        self._queues: dict[Key, EmbeddingQueue] = {}
        self._users: Counter[Key] = Counter()
        self._shipped = WordPieces(SHIPPED.tokenizer_file)

    @property
    def queues(self) -> list[EmbeddingQueue]:
        """Every model that a workspace asked for."""
        return list(self._queues.values())

    def queue_for(self, config: WorkspaceConfig) -> EmbeddingQueue | None:
        """Return the queue of the configured model, which loads in the background; None for "none".

        Whoever takes one gives it back with `release`.
        """
        key = _key(config)
        if key is None:
            return None
        if key not in self._queues:
            self._queues[key] = EmbeddingQueue(self._loader(config), provider=config.provider)
        self._users[key] += 1
        return self._queues[key]

    def release(self, config: WorkspaceConfig) -> EmbeddingQueue | None:
        """Return the queue that nobody uses any more, for the caller to close; None if somebody does."""
        key = _key(config)
        if key is None:
            return None
        self._users[key] -= 1
        return self._queues.pop(key) if self._users[key] == 0 else None

    def tokenizer_for(self, config: WorkspaceConfig) -> tuple[WordPieces, int]:
        """Return what chunks are measured with, and how many word pieces may be in one.

        A model that cannot be read now, or has no tokenizer of its own here, is measured with the shipped
        one: its words are searchable all the same.
        """
        if config.provider == "ollama":
            from memd.embedding.ollama import max_tokens_of  # noqa: PLC0415 - as below

            return self._shipped, max_tokens_of(config.model)
        folder = SHIPPED
        if config.provider == "onnx" and config.model != BUILTIN_MODEL:
            try:
                folder = read_folder(Path(config.model).expanduser())
                return _measured(folder, WordPieces(folder.tokenizer_file))
            except UnavailableError:
                folder = SHIPPED
        return _measured(folder, self._shipped)

    def close(self) -> None:
        """Free every model."""
        for queue in self._queues.values():
            queue.close()

    def _loader(self, config: WorkspaceConfig) -> Callable[[], Embedder]:
        if config.provider == "ollama":
            # It loads an HTTP client, which a daemon without such a workspace does not need.
            from memd.embedding.ollama import OllamaEmbedder  # noqa: PLC0415

            return lambda: OllamaEmbedder(
                config.address, config.model, OLLAMA_TIMEOUT_S, tokenizer=self._shipped
            )
        if config.model == BUILTIN_MODEL:
            return OnnxEmbedder
        return lambda: OnnxEmbedder(Path(config.model).expanduser())


def _measured(folder: ModelFolder, pieces: WordPieces) -> tuple[WordPieces, int]:
    prefix = max(pieces.count(folder.document_prefix), pieces.count(folder.query_prefix))
    return pieces, folder.max_sequence - pieces.special_tokens - prefix


def _key(config: WorkspaceConfig) -> Key | None:
    if config.provider == "none":
        return None
    return config.provider, config.model, config.address if config.provider == "ollama" else ""

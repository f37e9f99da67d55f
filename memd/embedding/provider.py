"""The providers of embeddings: one queue per configured model, shared by its workspaces."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memctl import paths
from memd.config import BUILTIN_MODEL, SERVED, OpenAIServer, UserConfig, WorkspaceConfig, is_installed_name
from memd.embedding import MODEL_FAILED, Embedder, UnavailableError
from memd.embedding.model import MAX_SEQUENCE, SPECIAL_TOKENS
from memd.embedding.model_folder import SHIPPED, ModelFolder, read_folder
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.queue import EmbeddingQueue
from memd.embedding.tokenizer import Pieces, Tokenizers

MODELS = "memd.models"  # group of entry points
SERVER_TIMEOUT_S = 30.0  # of one request; a server that loads a large model first takes that long


# Provider, model, address, the scripts it reads, the settings of its server.
Key = tuple[str, str, str, tuple[str, ...] | None, OpenAIServer | None]


class Providers:
    """The models in use. Not thread-safe: only the thread that opens workspaces may use it."""

    def __init__(self) -> None:
        self._queues: dict[Key, EmbeddingQueue] = {}
        self._users: dict[EmbeddingQueue, int] = {}
        self._tokenizers = Tokenizers()

    @property
    def _shipped(self) -> Pieces:
        """The shipped tokenizer; not kept, since with another model nothing uses it, and it takes 15 MB."""
        return self._tokenizers.at(SHIPPED.tokenizer_file)

    @property
    def queues(self) -> list[EmbeddingQueue]:
        """The queues of all models in use."""
        return list(self._queues.values())

    def queue_for(self, config: WorkspaceConfig, user: UserConfig) -> EmbeddingQueue | None:
        """Return the queue of the configured model, which loads in the background; None for "none".

        The caller must give it back with `release`.
        """
        if config.provider == "none":
            return None
        address = config.address if config.provider in SERVED else ""
        server = _openai_server(config, user) if config.provider == "openai" else None
        key = config.provider, config.model, address, user.scripts, server
        if key not in self._queues:
            load = _reading(user.scripts, self._loader(config, user))
            self._queues[key] = EmbeddingQueue(load, provider=config.provider)
        queue = self._queues[key]
        self._users[queue] = self._users.get(queue, 0) + 1
        return queue

    def release(self, queue: EmbeddingQueue) -> bool:
        """Return whether a queue has no user any more; then the caller must close it."""
        self._users[queue] -= 1
        if self._users[queue]:
            return False
        del self._users[queue]
        self._queues = {key: other for key, other in self._queues.items() if other is not queue}
        return True

    def tokenizer_for(self, config: WorkspaceConfig, user: UserConfig) -> tuple[Pieces, int]:
        """Return the tokenizer that measures chunks, and the maximum word pieces of a chunk.

        A model that cannot be read now, or has no local tokenizer, is measured with the shipped one, so that
        its chunks can still be searched by keyword.
        """
        if config.provider == "ollama":
            from memd.embedding.servers import max_tokens_of  # noqa: PLC0415 - as below

            return self._shipped, max_tokens_of(config.model)
        if config.provider == "openai":
            return self._shipped, _openai_server(config, user).max_tokens
        if config.provider == "onnx" and config.model != BUILTIN_MODEL:
            with suppress(UnavailableError):
                folder = read_folder(_path(config.model))
                return _measured(folder, self._tokenizers.at(folder.tokenizer_file))
        return self._shipped, MAX_SEQUENCE - SPECIAL_TOKENS

    def close(self) -> None:
        """Free every model."""
        for queue in self._queues.values():
            queue.close()

    def _loader(self, config: WorkspaceConfig, user: UserConfig) -> Callable[[], Embedder]:
        if config.provider == "ollama":
            # It imports an HTTP client, which a daemon without such a workspace does not need.
            from memd.embedding.servers import OllamaEmbedder  # noqa: PLC0415

            return lambda: OllamaEmbedder(
                config.address, config.model, SERVER_TIMEOUT_S, tokenizer=self._shipped
            )
        if config.provider == "openai":
            from memd.embedding.servers import OpenAIEmbedder  # noqa: PLC0415 - as above

            server = _openai_server(config, user)
            return lambda: OpenAIEmbedder(
                config.address, config.model, SERVER_TIMEOUT_S, server=server, tokenizer=self._shipped
            )
        tokenizer = self._tokenizers.at
        if config.model == BUILTIN_MODEL:
            return lambda: OnnxEmbedder(None, tokenizer)
        # A package manager replaces files, and never writes into them.
        copies = None if is_installed_name(config.model) else paths.state_dir()
        return lambda: OnnxEmbedder(_path(config.model), tokenizer, copies=copies)


def _openai_server(config: WorkspaceConfig, user: UserConfig) -> OpenAIServer:
    return user.openai.get(config.address, OpenAIServer())


def _path(model: str) -> Path:
    """Return the folder of a model by its name, or the folder that *model* is. Raises UnavailableError.

    A model that is installed as a package names itself by an entry point of the group MODELS: its name is
    that of the model, its value the package, whose folder has the model's files. No code of the package runs.
    """
    if not is_installed_name(model):
        return Path(model).expanduser()
    from importlib import invalidate_caches  # noqa: PLC0415 - the shipped model needs no search
    from importlib.metadata import entry_points  # noqa: PLC0415
    from importlib.util import find_spec  # noqa: PLC0415

    invalidate_caches()  # it may have been installed since memd started
    for point in entry_points(group=MODELS, name=model):
        spec = find_spec(point.module) if point.module.isidentifier() else None
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0])
    raise UnavailableError(
        MODEL_FAILED,
        f"The model {model!r} is not installed with memd. memctl models list names those that are; "
        "docs/models.md says how to build and install one.",
    )


def _measured(folder: ModelFolder, pieces: Pieces) -> tuple[Pieces, int]:
    prefix = max(pieces.count(folder.document_prefix), pieces.count(folder.query_prefix))
    return pieces, folder.max_sequence - pieces.special_tokens - prefix


def _reading(scripts: tuple[str, ...] | None, load: Callable[[], Embedder]) -> Callable[[], Embedder]:
    """Return a function that calls *load* and sets the scripts of a model that does not know them itself."""

    def loaded() -> Embedder:
        embedder = load()
        if embedder.scripts is None and scripts is not None:
            embedder.scripts = frozenset(scripts)
        return embedder

    return loaded

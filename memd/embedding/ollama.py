"""The embedding provider for an Ollama server."""

from dataclasses import dataclass

from memd.embedding.model_server import ModelServer
from memd.embedding.server_embedder import ServerEmbedder
from memd.records import Tokenizer


@dataclass(frozen=True, slots=True)
class _Manner:
    """How a model wants to be asked; Ollama itself does not say."""

    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = 254  # the shortest of those that Ollama serves (all-minilm), two special tokens off
    scripts: frozenset[str] | None = None


_MANNERS = {
    # Trained with these prefixes; reads 2,048 pieces, of which 8 are left for prefix and special tokens.
    "nomic-embed-text": _Manner("search_query: ", "search_document: ", 2_040, frozenset({"Latin"})),
    "all-minilm": _Manner(scripts=frozenset({"Latin"})),
}


def max_tokens_of(model: str) -> int:
    """Return how many word pieces *model* reads; known before its server is asked."""
    return _manner(model).max_tokens


def _manner(model: str) -> _Manner:
    return _MANNERS.get(model.partition(":")[0], _Manner())


class OllamaEmbedder(ServerEmbedder):
    """One model of one Ollama server."""

    def __init__(self, address: str, model: str, timeout_s: float, *, tokenizer: Tokenizer) -> None:
        """Ask the server for the model. Raises UnavailableError.

        Args:
            address: such as "http://127.0.0.1:11434".
            model: as `ollama list` shows it; without a tag it means ":latest".
            timeout_s: for one whole request, loading the model included.
            tokenizer: what chunks are measured with.
        """
        server = ModelServer(
            "Ollama",
            address,
            model,
            timeout_s,
            start="Start it: ollama serve",
            known="Known models: ollama list",
        )
        manner = _manner(model)
        prefixes = manner.query_prefix, manner.document_prefix
        super().__init__(server, model, prefixes, tokenizer=tokenizer, max_tokens=manner.max_tokens)
        self.scripts = manner.scripts
        self._loaded_digest = self._digest()
        self.model_id = f"ollama:{model}@{self._loaded_digest[:16]}"
        self.learn_dim()

    def _digest(self) -> str:
        """Return the hash of the model's file: `ollama pull` may change what stands behind a name."""
        listed = self._server.ask("GET", "/api/tags", None).get("models")
        wanted = self._model if ":" in self._model else f"{self._model}:latest"
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, dict) and each.get("name") == wanted and each.get("digest"):
                return str(each["digest"]).removeprefix("sha256:")
        raise self._server.failure(f"has no model {wanted!r}. Run: ollama pull {self._model}")

    def _rows(self, texts: list[str]) -> object:
        return self._server.ask("POST", "/api/embed", {"model": self._model, "input": texts}).get(
            "embeddings"
        )

    def _embed(self, texts: list[str]) -> list[bytes]:
        vectors = super()._embed(texts)
        # Looked at after the answer: what was pulled meanwhile may have given it.
        if self._digest() != self._loaded_digest:
            raise self._server.failure(
                f"has another model behind the name {self._model!r} now. It is loaded anew."
            )
        return vectors

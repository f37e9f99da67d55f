"""The embedding provider for an Ollama server."""

from collections.abc import Sequence
from dataclasses import dataclass

from memd.embedding.model_server import BATCH_TEXTS, ModelServer
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


class OllamaEmbedder:
    """One model of one server. Safe to call from several threads: a request keeps nothing."""

    remote = True

    def __init__(self, address: str, model: str, timeout_s: float, *, tokenizer: Tokenizer) -> None:
        """Ask the server for the model. Raises UnavailableError.

        Args:
            address: such as "http://127.0.0.1:11434".
            model: as `ollama list` shows it; without a tag it means ":latest".
            timeout_s: for one whole request, loading the model included.
            tokenizer: what chunks are measured with.
        """
        self._server = ModelServer(
            "Ollama",
            address,
            model,
            timeout_s,
            start="Start it: ollama serve",
            known="Known models: ollama list",
        )
        self._model = model
        self._manner = _manner(model)
        self._closed = False
        self.tokenizer = tokenizer
        self.max_tokens = self._manner.max_tokens
        self.scripts = self._manner.scripts
        self.dim = 0  # not known before the first answer
        self._loaded_digest = self._digest()
        self.model_id = f"ollama:{model}@{self._loaded_digest[:16]}"
        self.dim = len(self._embed([self._manner.query_prefix + "memd"])[0]) // 4

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text, in order."""
        return self._in_batches([self._manner.document_prefix + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text that is asked, in order."""
        return self._in_batches([self._manner.query_prefix + text for text in texts])

    def embed_query(self, text: str) -> bytes:
        """Return the vector of one."""
        return self.embed_queries([text])[0]

    def close(self) -> None:
        """Ask no more; later calls raise UnavailableError."""
        self._closed = True

    def _digest(self) -> str:
        """Return the hash of the model's file: `ollama pull` may change what stands behind a name."""
        listed = self._server.ask("GET", "/api/tags", None).get("models")
        wanted = self._model if ":" in self._model else f"{self._model}:latest"
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, dict) and each.get("name") == wanted and each.get("digest"):
                return str(each["digest"]).removeprefix("sha256:")
        raise self._server.failure(f"has no model {wanted!r}. Run: ollama pull {self._model}")

    def _in_batches(self, texts: list[str]) -> list[bytes]:
        batches = [texts[start : start + BATCH_TEXTS] for start in range(0, len(texts), BATCH_TEXTS)]
        return [vector for batch in batches for vector in self._embed(batch)]

    def _embed(self, texts: list[str]) -> list[bytes]:
        if self._closed:
            raise self._server.failure("is not asked any more: the model was closed.")
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        answer = self._server.ask("POST", "/api/embed", {"model": self._model, "input": clean})
        rows = answer.get("embeddings")
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise self._server.failure(
                f"did not give {len(texts)} embeddings for {self._model!r}. Is it an embedding model?"
            )
        vectors = [self._server.unit(row, self.dim) for row in rows]
        # Looked at after the answer: what was pulled meanwhile may have given it.
        if self._digest() != self._loaded_digest:
            raise self._server.failure(
                f"has another model behind the name {self._model!r} now. It is loaded anew."
            )
        return vectors

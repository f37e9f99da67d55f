"""The embedding provider for a server that speaks the OpenAI embeddings API, such as llama.cpp or vLLM."""

import hashlib
import os
from collections.abc import Sequence

from memd.config import OpenAIServer
from memd.embedding import MODEL_FAILED, UnavailableError
from memd.embedding.model_server import BATCH_TEXTS, ModelServer
from memd.records import Tokenizer

PATH = "/v1/embeddings"


class OpenAIEmbedder:
    """One model of one server. Safe to call from several threads: a request keeps nothing."""

    remote = True

    def __init__(
        self, address: str, model: str, timeout_s: float, *, server: OpenAIServer, tokenizer: Tokenizer
    ) -> None:
        """Ask the server for a vector, which tells the dimension. Raises UnavailableError.

        Args:
            address: such as "http://127.0.0.1:8080"; "/v1" at its end may be left out.
            model: as the server calls it.
            timeout_s: for one whole request, loading the model included.
            server: what the user's own configuration says of the address.
            tokenizer: what chunks are measured with.
        """
        base = address.rstrip("/").removesuffix("/v1")
        self._server = ModelServer(
            "The OpenAI-compatible server",
            base,
            model,
            timeout_s,
            start="Is it running, with embeddings switched on?",
            known=f"Its models are listed at {base}/v1/models",
            key=_key(address, server),
        )
        self._model = model
        self._prefixes = server.query_prefix, server.document_prefix
        self._closed = False
        self.tokenizer = tokenizer
        self.max_tokens = server.max_tokens
        self.scripts: frozenset[str] | None = None
        self.dim = 0  # not known before the first answer
        self.dim = len(self._embed([server.query_prefix + "memd"])[0]) // 4
        # The API tells no checksum of a model. Another address may have another model of that name.
        space = hashlib.sha256(repr((base, self.dim, self._prefixes)).encode()).hexdigest()
        self.model_id = f"openai:{model}@{space[:16]}"

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text, in order."""
        return self._in_batches([self._prefixes[1] + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text that is asked, in order."""
        return self._in_batches([self._prefixes[0] + text for text in texts])

    def embed_query(self, text: str) -> bytes:
        """Return the vector of one."""
        return self.embed_queries([text])[0]

    def close(self) -> None:
        """Ask no more; later calls raise UnavailableError."""
        self._closed = True

    def _in_batches(self, texts: list[str]) -> list[bytes]:
        batches = [texts[start : start + BATCH_TEXTS] for start in range(0, len(texts), BATCH_TEXTS)]
        return [vector for batch in batches for vector in self._embed(batch)]

    def _embed(self, texts: list[str]) -> list[bytes]:
        if self._closed:
            raise self._server.failure("is not asked any more: the model was closed.")
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        answer = self._server.ask("POST", PATH, {"model": self._model, "input": clean})
        rows = answer.get("data")
        by_index = {
            row["index"]: row.get("embedding")
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict) and type(row.get("index")) is int
        }
        if by_index.keys() != set(range(len(texts))):
            raise self._server.failure(
                f"did not give {len(texts)} embeddings for {self._model!r}. Is it an embedding model?"
            )
        return [self._server.unit(by_index[index], self.dim) for index in range(len(texts))]


def _key(address: str, server: OpenAIServer) -> str:
    """Return the key of the API; "" for a server that wants none. No error quotes it."""
    where = f'[openai."{address}"] in your own config.toml'
    key = server.api_key
    if server.api_key_env:
        key = os.environ.get(server.api_key_env, "").strip()
        if not key:
            raise UnavailableError(
                MODEL_FAILED,
                f"{where} names api_key_env = {server.api_key_env!r}, which is not in memd's environment. "
                "Set it where memd is started, and restart memd.",
            )
    if not all("!" <= character <= "~" for character in key):
        raise UnavailableError(
            MODEL_FAILED, f"The API key of {where} has characters that no header can hold."
        )
    return key

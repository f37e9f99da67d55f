"""The embedding provider for a server that speaks the OpenAI embeddings API, such as llama.cpp or vLLM."""

import hashlib
import os

from memd.config import OpenAIServer
from memd.embedding import MODEL_FAILED, UnavailableError
from memd.embedding.model_server import ModelServer
from memd.embedding.server_embedder import ServerEmbedder
from memd.records import Tokenizer

PATH = "/v1/embeddings"


class OpenAIEmbedder(ServerEmbedder):
    """One model of one server that speaks the OpenAI API."""

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
        asked = ModelServer(
            "The OpenAI-compatible server",
            base,
            model,
            timeout_s,
            start="Is it running, with embeddings switched on?",
            known=f"Its models are listed at {base}/v1/models",
            key=_key(address, server),
        )
        prefixes = server.query_prefix, server.document_prefix
        super().__init__(asked, model, prefixes, tokenizer=tokenizer, max_tokens=server.max_tokens)
        self.learn_dim()
        # The API tells no checksum of a model. Another address may have another model of that name.
        space = hashlib.sha256(repr((base, self.dim, prefixes)).encode()).hexdigest()
        self.model_id = f"openai:{model}@{space[:16]}"

    def _rows(self, texts: list[str]) -> object:
        rows = self._server.ask("POST", PATH, {"model": self._model, "input": texts}).get("data")
        if not isinstance(rows, list) or len(rows) != len(texts):
            return None
        by_index = {
            row["index"]: row.get("embedding")
            for row in rows
            if isinstance(row, dict) and type(row.get("index")) is int
        }
        wanted = range(len(texts))
        return [by_index[index] for index in wanted] if by_index.keys() == set(wanted) else None


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

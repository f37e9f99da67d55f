"""The embedding provider for an Ollama server.

Speaks HTTP with the standard library alone, opens one connection a request and keeps none, so that a
server which dies and comes back is simply there again. Whether an address may be asked is decided by
the configuration, not here.
"""

import array
import http.client
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from memd.embedding import MODEL_FAILED, MODEL_SLOW, UnavailableError
from memd.records import Tokenizer

BATCH_TEXTS = 8  # in one request; more gains nothing on a CPU and makes the answer late
# Of one answer. 8 vectors of 4,096 numbers in JSON are below 1 MiB; the rest is room.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
READ_BYTES = 65_536


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
        self._address = address.rstrip("/")
        self._model = model
        self._timeout_s = timeout_s
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
        listed = self._ask("GET", "/api/tags", None).get("models")
        wanted = self._model if ":" in self._model else f"{self._model}:latest"
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, dict) and each.get("name") == wanted and each.get("digest"):
                return str(each["digest"]).removeprefix("sha256:")
        raise self._failure(f"has no model {wanted!r}. Run: ollama pull {self._model}")

    def _in_batches(self, texts: list[str]) -> list[bytes]:
        batches = [texts[start : start + BATCH_TEXTS] for start in range(0, len(texts), BATCH_TEXTS)]
        return [vector for batch in batches for vector in self._embed(batch)]

    def _embed(self, texts: list[str]) -> list[bytes]:
        if self._closed:
            raise self._failure("is not asked any more: the model was closed.")
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        answer = self._ask("POST", "/api/embed", {"model": self._model, "input": clean})
        rows = answer.get("embeddings")
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise self._failure(
                f"did not give {len(texts)} embeddings for {self._model!r}. Is it an embedding model?"
            )
        vectors = [self._unit(row) for row in rows]
        # Looked at after the answer: what was pulled meanwhile may have given it.
        if self._digest() != self._loaded_digest:
            raise self._failure(f"has another model behind the name {self._model!r} now. It is loaded anew.")
        return vectors

    def _unit(self, row: Any) -> bytes:
        """Return *row* as float32 of length 1."""
        try:
            numbers = [float(number) for number in row]
        except (TypeError, ValueError) as error:
            raise self._failure(f"gave an embedding that is not a list of numbers: {error}") from error
        if self.dim and len(numbers) != self.dim:
            raise self._failure(
                f"gave {len(numbers)} dimensions for {self._model!r}, which had {self.dim} before: another "
                "model stands behind the name, and its vectors are another space. It is loaded anew."
            )
        length = math.hypot(*numbers)
        if not 0 < length < math.inf:
            raise self._failure(f"gave an embedding of length {length} for {self._model!r}.")
        vector = array.array("f", (number / length for number in numbers))
        if sys.byteorder == "big":
            vector.byteswap()
        return vector.tobytes()

    def _ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        try:
            status, content = self._exchange(method, path, body)
        except TimeoutError as error:
            raise UnavailableError(
                MODEL_SLOW,
                f"Ollama at {self._address} did not answer {path} within {self._timeout_s:g} s. It may be "
                f"loading {self._model!r}, or the machine is busy.",
            ) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            fault = f"{type(error).__name__}: {error}"
            raise self._failure(f"does not answer {path} ({fault}). Start it: ollama serve") from error
        if status != http.client.OK:
            text = content[:200].decode("utf-8", "replace").strip()
            raise self._failure(f"answered {path} with status {status}: {text}. Known models: ollama list")
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise self._failure(f"answered {path} with something that is not JSON. Is it Ollama?") from error
        if not isinstance(answer, dict):
            raise self._failure(f"answered {path} with a {type(answer).__name__}. Is it Ollama?")
        return answer

    def _exchange(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        """One request on a connection of its own; redirects are not followed, proxies not asked."""
        stop = time.monotonic() + self._timeout_s
        parts = urlsplit(self._address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout_s)
        try:
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, parts.path + path, payload, {"Content-Type": "application/json"})
            # Closed on its own account: where the server ends the connection, it owns the socket.
            with connection.getresponse() as response:
                return response.status, _read(connection, response, stop)
        finally:
            connection.close()

    def _failure(self, what: str) -> UnavailableError:
        return UnavailableError(MODEL_FAILED, f"Ollama at {self._address} {what}")


def _read(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, stop: float) -> bytes:
    """Read the whole answer before *stop*: a socket's own timeout starts anew with every byte."""
    content = bytearray()
    while True:
        left_s = stop - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if connection.sock is not None:  # None once the server announced the end of the connection
            connection.sock.settimeout(left_s)
        part = response.read1(READ_BYTES)
        if not part:
            if response.length:
                raise http.client.IncompleteRead(bytes(content[:1]), response.length)
            return bytes(content)
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            raise ValueError(f"more than {MAX_ANSWER_BYTES} bytes")

"""The embedding providers on servers: Ollama, and the OpenAI embeddings API (llama.cpp, vLLM).

They share roles, batches, and the rule of one vector of length 1 per text. `ModelServer` speaks HTTP with
the standard library and opens a connection for each request, so that a restarted server needs no special
handling. Each request has one deadline. The configuration, not this module, decides which addresses are
allowed.
"""

from __future__ import annotations

import array
import hashlib
import http.client
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from memd.config import OpenAIServer
from memd.embedding import MODEL_FAILED, MODEL_SLOW, UnavailableError
from memd.records import CosineScale, Tokenizer

BATCH_TEXTS = 8  # in one request; more is no faster on a CPU and delays the answer

# Of one answer. 8 vectors of 4,096 numbers in JSON are below 1 MiB; the rest is reserve.
MAX_ANSWER_BYTES = 16 * 1024 * 1024
READ_BYTES = 65_536

PATH = "/v1/embeddings"


@dataclass(frozen=True, slots=True)
class Role:
    """How a server is asked for the vectors of queries, or of documents."""

    model: str  # its name on the server
    prefix: str = ""
    input_type: str = ""  # parameter of the request; "": not sent


class ServerEmbedder:
    """One model of one server, or two of one vector space. Thread-safe: a request keeps no state."""

    remote = True
    cosines: CosineScale | None = None

    def __init__(
        self, server: ModelServer, queries: Role, documents: Role, *, tokenizer: Tokenizer, max_tokens: int
    ) -> None:
        """Store the settings; send no request yet. *tokenizer* measures chunks."""
        self._server = server
        self._queries = queries
        self._documents = documents
        self._closed = False
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.scripts: frozenset[str] | None = None
        self.dim = 0  # unknown before the first answer
        self.model_id = ""  # unknown before the first answer

    def learn_dim(self) -> None:
        """Request a vector of each model, which shows the dimension. Raises UnavailableError."""
        asked = {role.model: role for role in (self._documents, self._queries)}
        dims = {model: len(self._embed(["memd"], role)[0]) // 4 for model, role in asked.items()}
        if len(set(dims.values())) > 1:
            raise self._server.failure(
                f"gave {' and '.join(f'{dim} dimensions for {model!r}' for model, dim in dims.items())}, but "
                "query_model and document_model must have one vector space. Correct them in your own "
                "config.toml."
            )
        self.dim = dims[self._queries.model]

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per text, in order."""
        return self._in_batches(texts, self._documents)

    def embed_queries(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per query, in order."""
        return self._in_batches(texts, self._queries)

    def close(self) -> None:
        """Send no more requests; later calls raise UnavailableError."""
        self._closed = True

    def _in_batches(self, texts: Sequence[str], role: Role) -> list[bytes]:
        batches = [texts[start : start + BATCH_TEXTS] for start in range(0, len(texts), BATCH_TEXTS)]
        return [vector for batch in batches for vector in self._embed(batch, role)]

    def _embed(self, texts: Sequence[str], role: Role) -> list[bytes]:
        if self._closed:
            raise self._server.failure("is no longer used: the model was closed.")
        sent = [(role.prefix + text).encode("utf-8", "replace").decode("utf-8") for text in texts]
        rows = self._rows(sent, role)
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise self._server.failure(
                f"did not give {len(texts)} embeddings for {role.model!r}. Is it an embedding model?"
            )
        return [self._server.unit(row, self.dim, role.model) for row in rows]

    def _rows(self, texts: list[str], role: Role) -> object:
        """Return the server's answer, which should be a list with a row of numbers per text."""
        raise NotImplementedError


class ModelServer:
    """The HTTP client for the models of one server. Thread-safe: a request keeps no state."""

    def __init__(
        self, name: str, address: str, timeout_s: float, *, start: str, known: str, key: str = ""
    ) -> None:
        """Store the settings; send no request yet.

        *timeout_s* is for one whole request, including loading the model. Errors name the program, and advise
        how to *start* it, and how its *known* models are listed. *key*: sent as a bearer token, never part of
        an error.
        """
        self._name = name
        self._address = address.rstrip("/")
        self._timeout_s = timeout_s
        self._start = start
        self._known = known
        self._key = key

    def unit(self, row: Any, dim: int, model: str) -> bytes:
        """Return *row*, a vector of *model*, as float32 of length 1.

        It must have *dim* numbers, or any number if *dim* is 0.
        """
        if not isinstance(row, list) or not all(type(number) in (int, float) for number in row):
            raise self.failure(f"gave an embedding for {model!r} that is not a list of numbers.")
        try:
            numbers = [float(number) for number in row]
        except OverflowError as error:
            raise self.failure(
                f"gave an embedding for {model!r} with a number that is not finite."
            ) from error
        if dim and len(numbers) != dim:
            raise self.failure(
                f"gave {len(numbers)} dimensions for {model!r}, which had {dim} before: another "
                "model has this name now, with other vectors. It is loaded again."
            )
        length = math.hypot(*numbers)
        if not 0 < length < math.inf:
            raise self.failure(f"gave an embedding of length {length} for {model!r}.")
        vector = array.array("f", (number / length for number in numbers))
        if sys.byteorder == "big":
            vector.byteswap()
        return vector.tobytes()

    def ask(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        """Return the JSON object in the server's answer. Raises UnavailableError."""
        try:
            status, content = self._exchange(method, path, body)
        except TimeoutError as error:
            loading = repr(body["model"]) if body else "a model"
            raise UnavailableError(
                MODEL_SLOW,
                f"{self._name} at {self._address} did not answer {path} within {self._timeout_s:g} s. It may "
                f"be loading {loading}, or the machine is busy.",
            ) from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            fault = f"{type(error).__name__}: {error}"
            raise self.failure(f"does not answer {path} ({fault}). {self._start}") from error
        if status != http.client.OK:
            text = content.decode("utf-8", "replace")
            if self._key:  # the server may quote it; replaced before the cut, so that no part of it stays
                text = text.replace(self._key, "(the API key)")
            text = text[:200].strip()
            raise self.failure(f"answered {path} with status {status}: {text}. {self._known}")
        try:
            answer = json.loads(content)
        except ValueError as error:
            raise self.failure(
                f"answered {path} with something that is not JSON. Is it {self._name}?"
            ) from error
        if not isinstance(answer, dict):
            raise self.failure(f"answered {path} with a {type(answer).__name__}. Is it {self._name}?")
        return answer

    def _exchange(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes]:
        """Send one request on a new connection, without redirects and proxies; return status and content."""
        stop = time.monotonic() + self._timeout_s
        parts = urlsplit(self._address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout_s)
        try:
            payload = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            connection.request(method, parts.path + path, payload, headers)
            # Closed separately: when the server ends the connection, the response owns the socket.
            with connection.getresponse() as response:
                return response.status, _read(connection, response, stop)
        finally:
            connection.close()

    def failure(self, what: str) -> UnavailableError:
        """Return an error about this server; *what* is the predicate of the sentence."""
        return UnavailableError(MODEL_FAILED, f"{self._name} at {self._address} {what}")


def _read(connection: http.client.HTTPConnection, response: http.client.HTTPResponse, stop: float) -> bytes:
    """Read the whole answer before *stop*; a socket's own timeout restarts with every byte."""
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


@dataclass(frozen=True, slots=True)
class _Manner:
    """The prefixes and the length of a model, which Ollama does not report."""

    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int = 254  # the shortest of Ollama's models (all-minilm), minus two special tokens
    scripts: frozenset[str] | None = None


_MANNERS = {
    # Trained with these prefixes; reads 2,048 pieces, of which 8 are reserved for prefix and special tokens.
    "nomic-embed-text": _Manner("search_query: ", "search_document: ", 2_040, frozenset({"Latin"})),
    "all-minilm": _Manner(scripts=frozenset({"Latin"})),
}


def max_tokens_of(model: str) -> int:
    """Return how many word pieces *model* reads, without a request."""
    return _manner(model).max_tokens


def _manner(model: str) -> _Manner:
    return _MANNERS.get(model.partition(":")[0], _Manner())


class OllamaEmbedder(ServerEmbedder):
    """One model of one Ollama server."""

    def __init__(self, address: str, model: str, timeout_s: float, *, tokenizer: Tokenizer) -> None:
        """Check that the server has the *model*, whose name means ":latest" without a tag.

        Raises UnavailableError.
        """
        server = ModelServer(
            "Ollama", address, timeout_s, start="Start it: ollama serve", known="Known models: ollama list"
        )
        manner = _manner(model)
        queries, documents = Role(model, manner.query_prefix), Role(model, manner.document_prefix)
        super().__init__(server, queries, documents, tokenizer=tokenizer, max_tokens=manner.max_tokens)
        self._model = model
        self.scripts = manner.scripts
        self._loaded_digest = self._digest()
        self.model_id = f"ollama:{model}@{self._loaded_digest[:16]}"
        self.learn_dim()

    def _digest(self) -> str:
        """Return the hash of the model's file: `ollama pull` may change the model behind a name."""
        listed = self._server.ask("GET", "/api/tags", None).get("models")
        wanted = self._model if ":" in self._model else f"{self._model}:latest"
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, dict) and each.get("name") == wanted and each.get("digest"):
                return str(each["digest"]).removeprefix("sha256:")
        raise self._server.failure(f"has no model {wanted!r}. Run: ollama pull {self._model}")

    def _rows(self, texts: list[str], role: Role) -> object:
        return self._server.ask("POST", "/api/embed", {"model": role.model, "input": texts}).get("embeddings")

    def _embed(self, texts: Sequence[str], role: Role) -> list[bytes]:
        vectors = super()._embed(texts, role)
        # Checked after the answer: a model pulled in the meantime may have computed it.
        if self._digest() != self._loaded_digest:
            raise self._server.failure(
                f"has another model under the name {self._model!r} now. It is loaded again."
            )
        return vectors


class OpenAIEmbedder(ServerEmbedder):
    """The models of one vector space on one server that speaks the OpenAI API."""

    def __init__(
        self, address: str, model: str, timeout_s: float, *, server: OpenAIServer, tokenizer: Tokenizer
    ) -> None:
        """Request vectors, which show the dimension. Raises UnavailableError.

        *address* may end with "/v1"; the user's settings of *server* may name other models than *model*.
        """
        base = address.rstrip("/").removesuffix("/v1")
        asked = ModelServer(
            "The OpenAI-compatible server",
            base,
            timeout_s,
            start="Is it running, with embeddings switched on?",
            known=f"Its models are listed at {base}/v1/models",
            key=_key(address, server),
        )
        kind = server.input_type
        queries = Role(server.query_model or model, server.query_prefix, kind.query if kind else "")
        documents = Role(
            server.document_model or model, server.document_prefix, kind.document if kind else ""
        )
        super().__init__(asked, queries, documents, tokenizer=tokenizer, max_tokens=server.max_tokens)
        self.learn_dim()
        # The API has no checksum of a model. Another address may have another model of that name. The parts
        # that few servers need are left out otherwise, so that indexes made before these settings stay valid.
        parts: list[object] = [base, self.dim, (queries.prefix, documents.prefix)]
        parts += [queries.model] if queries.model != documents.model else []
        parts += [(kind.query, kind.document)] if kind else []
        space = hashlib.sha256(repr(tuple(parts)).encode()).hexdigest()
        self.model_id = f"openai:{documents.model}@{space[:16]}"

    def _rows(self, texts: list[str], role: Role) -> object:
        body: dict[str, Any] = {"model": role.model, "input": texts}
        if role.input_type:
            body["input_type"] = role.input_type
        rows = self._server.ask("POST", PATH, body).get("data")
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
    """Return the API key; "" for a server without one. No error quotes it."""
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
            MODEL_FAILED, f"The API key of {where} has characters that a header cannot contain."
        )
    return key

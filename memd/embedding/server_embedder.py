"""What embedding providers that ask a server share: prefixes, batches, and one vector of length 1 a text."""

from collections.abc import Sequence

from memd.embedding.model_server import ModelServer
from memd.records import Tokenizer

BATCH_TEXTS = 8  # in one request; more gains nothing on a CPU and makes the answer late


class ServerEmbedder:
    """One model of one server. Safe to call from several threads: a request keeps nothing."""

    remote = True

    def __init__(
        self,
        server: ModelServer,
        model: str,
        prefixes: tuple[str, str],
        *,
        tokenizer: Tokenizer,
        max_tokens: int,
    ) -> None:
        """Ask nothing yet.

        Args:
            server: is asked for the vectors.
            model: as the server calls it.
            prefixes: of what is asked and of what is embedded; "": none.
            tokenizer: what chunks are measured with.
            max_tokens: word pieces that the model reads of a text.
        """
        self._server = server
        self._model = model
        self._query_prefix, self._document_prefix = prefixes
        self._closed = False
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.scripts: frozenset[str] | None = None
        self.dim = 0  # not known before the first answer
        self.model_id = ""  # neither is this

    def learn_dim(self) -> None:
        """Ask for a vector, which tells the dimension. Raises UnavailableError."""
        self.dim = len(self._embed([self._query_prefix + "memd"])[0]) // 4

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text, in order."""
        return self._in_batches([self._document_prefix + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text that is asked, in order."""
        return self._in_batches([self._query_prefix + text for text in texts])

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
        rows = self._rows([text.encode("utf-8", "replace").decode("utf-8") for text in texts])
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise self._server.failure(
                f"did not give {len(texts)} embeddings for {self._model!r}. Is it an embedding model?"
            )
        return [self._server.unit(row, self.dim) for row in rows]

    def _rows(self, texts: list[str]) -> object:
        """Return what the server answers, a list of a row of numbers a text; whatever else it may be."""
        raise NotImplementedError

"""Embedding: the providers that turn texts into float32 vectors of length 1."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

from memd.errors import EmbedderError
from memd.records import CosineScale, Tokenizer

# Why there is no vector; these codes appear in the `degraded` field of answers.
Reason = Literal["model-loading", "model-failed", "model-slow", "numpy-missing"]
MODEL_LOADING: Final = "model-loading"  # temporary: retry after a second
MODEL_FAILED: Final = "model-failed"  # no file, no server, or it answered with an error
MODEL_SLOW: Final = "model-slow"  # it works, but not within the time that the caller had


class UnavailableError(EmbedderError):
    """There is no vector; *reason* is the code for the answer."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


class Embedder(Protocol):
    """A loaded model. Safe to call from several threads.

    A vector is ``bytes``: *dim* little-endian float32, of length 1, so that code that only passes it on needs
    no numpy.
    """

    model_id: str  # changes whenever the vectors would change: with weights, pooling, prefixes
    dim: int
    max_tokens: int  # word pieces of one text, special tokens not counted
    scripts: frozenset[str] | None  # Unicode script names that the model reads; None: all of them
    cosines: CosineScale | None  # None: not measured yet
    remote: bool  # another process embeds, without a bound on its time
    tokenizer: Tokenizer

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per text, in order. Raises EmbedderError."""

    def embed_queries(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per query, in order. Raises EmbedderError."""

    def close(self) -> None:
        """Free the model; later calls raise EmbedderError."""

"""The tokenizer: cuts a text into the model's word pieces.

The one importer of ``tokenizers``. Knows nothing of models, vectors or chunks.
"""

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

from memd.embedding import MODEL_FAILED, UnavailableError

# A text is cut to the model's length after it is tokenized, and tokenizing a megabyte takes a third
# of a second. What starts beyond this many characters is not read at all: at 4 characters a piece it
# is 60 times what MiniLM reads, so only runs of blanks or of unknown words reach it.
READ_CHARACTERS = 65_536

# Lone surrogates (from a note's broken escape) cannot be UTF-8. U+FFFD stands in, one for one, so that
# offsets stay those of the text as it was given.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")

_BERT = ["BertNormalizer", "BertPreTokenizer"]


class WordPieces:
    """One tokenizer.json, which is read when it is first needed: a start that embeds nothing does without.

    Safe to call from several threads: nothing changes once it is read. Whatever reads it raises
    UnavailableError where it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reading = threading.Lock()
        self._read: Any = None

    def load(self) -> "WordPieces":
        """Read it now, and return it."""
        _ = self._tokenizer
        return self

    @cached_property
    def parts_at_spaces(self) -> bool:
        """Whether it cuts at white space before anything else, as BERT's does; others join over it."""
        steps = (self._tokenizer.normalizer, self._tokenizer.pre_tokenizer)
        return [type(step).__name__ for step in steps] == _BERT

    @cached_property
    def special_tokens(self) -> int:
        """How many tokens it puts around a text."""
        return int(self._tokenizer.num_special_tokens_to_add(False))  # noqa: FBT003

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return [start, end) character offsets of each word piece, special tokens excluded."""
        # Batches of one: `encode` would hold the interpreter until it is through, 30 ms for 32 kB.
        [encoding] = self._tokenizer.encode_batch([_encodable(text)], add_special_tokens=False)
        offsets: list[tuple[int, int]] = encoding.offsets
        return offsets

    def count(self, text: str) -> int:
        """Return how many word pieces *text* has, special tokens excluded."""
        # Fast, because it does not look where the pieces are.
        [encoding] = self._tokenizer.encode_batch_fast([_encodable(text)], add_special_tokens=False)
        return len(encoding)

    def ids(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of at most *max_tokens* word pieces of *text*, between the special tokens."""
        read = _encodable(text[:READ_CHARACTERS])
        [encoding] = self._tokenizer.encode_batch([read], add_special_tokens=False)
        encoding.truncate(max_tokens)
        return list(self._tokenizer.post_process(encoding).ids)

    @property
    def _tokenizer(self) -> Any:
        if self._read is None:
            with self._reading:
                if self._read is None:
                    self._read = _load(self.path)
        return self._read


def _encodable(text: str) -> str:
    """Return *text* without lone surrogates, each character where it was."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text


def _load(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415  # a daemon without a model never pays for it
    except ImportError as error:
        raise UnavailableError(
            MODEL_FAILED, f"The package tokenizers cannot be imported ({error}). Install memd's dependencies."
        ) from error
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises plain Exception for a file it cannot read
        raise UnavailableError(
            MODEL_FAILED, f"{path} is not a tokenizer that can be read: {error}. Export the model again."
        ) from error
    # The published file truncates at 128 and pads to 128 on its own account, whatever the model reads:
    # a third of all chunks would lose their end in silence.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer

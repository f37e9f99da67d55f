"""The tokenizers: they cut a text into the word pieces of a model.

The only importer of ``tokenizers`` and ``sentencepiece``. Knows nothing of models, vectors or chunks.
"""

import threading
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

from memd.embedding import MODEL_FAILED, UnavailableError

# A text is cut to the model's length after it is tokenized, and tokenizing a megabyte takes a third of a
# second. Text after this many characters is ignored: at 4 characters a piece it is 60 times what MiniLM
# reads, so only runs of blanks or of unknown words are that long.
READ_CHARACTERS = 65_536

# Lone surrogates (from a broken escape in a note) cannot be encoded as UTF-8. Each is replaced by one U+FFFD,
# so that offsets into the original text stay valid.
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")

# The suffix of a file of the library sentencepiece. Not the usual ".model": such files of XLM-RoBERTa have
# other ids than the model's table.
SENTENCE_PIECES = ".sentencepiece"

_BERT = ["BertNormalizer", "BertPreTokenizer"]


class _Lazy:
    """A file that is read on first use, so that starting without embedding anything does not need it.

    Safe to call from several threads: it never changes after it is read. Each method that reads the file
    raises UnavailableError if that fails.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reading = threading.Lock()
        self._read: Any = None

    def load(self) -> Self:
        """Read the file now, and return self."""
        _ = self._tokenizer
        return self

    @property
    def _tokenizer(self) -> Any:
        if self._read is None:
            with self._reading:
                if self._read is None:
                    self._read = self._load()
        return self._read

    def _load(self) -> Any:
        raise NotImplementedError


class WordPieces(_Lazy):
    """One tokenizer.json."""

    @cached_property
    def parts_at_spaces(self) -> bool:
        """Whether it splits at white space first, as BERT's does; others join pieces over white space."""
        steps = (self._tokenizer.normalizer, self._tokenizer.pre_tokenizer)
        return [type(step).__name__ for step in steps] == _BERT

    @cached_property
    def special_tokens(self) -> int:
        """The number of special tokens around a text."""
        return int(self._tokenizer.num_special_tokens_to_add(False))  # noqa: FBT003

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return [start, end) character offsets of each word piece, special tokens excluded."""
        # Batches of one: `encode` would hold the GIL until it is done, 30 ms for 32 kB.
        [encoding] = self._tokenizer.encode_batch([encodable(text)], add_special_tokens=False)
        offsets: list[tuple[int, int]] = encoding.offsets
        return offsets

    def count(self, text: str) -> int:
        """Return the number of word pieces of *text*, special tokens excluded."""
        # Fast, because it does not compute the offsets.
        [encoding] = self._tokenizer.encode_batch_fast([encodable(text)], add_special_tokens=False)
        return len(encoding)

    def ids(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of the first *max_tokens* word pieces of *text*, between the special tokens."""
        read = encodable(text[:READ_CHARACTERS])
        [encoding] = self._tokenizer.encode_batch([read], add_special_tokens=False)
        encoding.truncate(max_tokens)
        return list(self._tokenizer.post_process(encoding).ids)

    def _load(self) -> Any:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415  # a daemon without a model does not need it
        except ImportError as error:
            raise UnavailableError(
                MODEL_FAILED,
                f"The package tokenizers cannot be imported ({error}). Install memd's dependencies.",
            ) from error
        try:
            tokenizer = Tokenizer.from_str(self.path.read_text(encoding="utf-8"))
        except Exception as error:  # tokenizers raises plain Exception for a file it cannot read
            raise UnavailableError(
                MODEL_FAILED,
                f"{self.path} is not a tokenizer that can be read: {error}. Export the model again.",
            ) from error
        # The published file truncates at 128 and pads to 128, independently of the model's length: a third of
        # all chunks would silently lose their end.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


class SentencePieces(_Lazy):
    """One file of the library sentencepiece: a sixth of the memory of `WordPieces`.

    The pieces in the file have the ids of the model's word table.
    """

    parts_at_spaces = False
    special_tokens = 2  # <s> and </s>

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return [start, end) character offsets of each word piece, special tokens excluded."""
        found = self._tokenizer.encode(encodable(text), return_type="offset_mapping")
        offsets: list[tuple[int, int]] = found["offsets"]
        return offsets

    def count(self, text: str) -> int:
        """Return the number of word pieces of *text*, special tokens excluded."""
        return len(self._tokenizer.encode(encodable(text)))

    def ids(self, text: str, max_tokens: int) -> list[int]:
        """Return the ids of the first *max_tokens* word pieces of *text*, between the special tokens."""
        processor = self._tokenizer
        ids = processor.encode(encodable(text[:READ_CHARACTERS]))[:max_tokens]
        return [processor.bos_id(), *ids, processor.eos_id()]

    def _load(self) -> Any:
        try:
            from sentencepiece import SentencePieceProcessor  # noqa: PLC0415 - only some models need it
        except ImportError as error:
            raise UnavailableError(
                MODEL_FAILED,
                f"{self.path} needs the package sentencepiece ({error}): pip install sentencepiece",
            ) from error
        try:
            return SentencePieceProcessor(model_proto=self.path.read_bytes())
        except (OSError, RuntimeError, ValueError) as error:
            raise UnavailableError(
                MODEL_FAILED,
                f"{self.path} is no file of sentencepiece that can be read: {error}. Install it again.",
            ) from error


Pieces = WordPieces | SentencePieces


def tokenizer_at(path: Path) -> Pieces:
    """Return the tokenizer in a file, which its name tells apart; nothing is read yet."""
    return SentencePieces(path) if path.suffix == SENTENCE_PIECES else WordPieces(path)


class Tokenizers:
    """The tokenizers in use, one for each file: a multilingual one takes up to 300 MB. Thread-safe."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Path, int, int], Pieces] = WeakValueDictionary()
        self._lock = threading.Lock()

    def at(self, path: Path) -> Pieces:
        """Return the tokenizer in a file; another one once the file was replaced."""
        try:
            found = path.stat()
        except OSError:
            return tokenizer_at(path)  # reading it gives the reason
        with self._lock:
            key = path, found.st_ino, found.st_mtime_ns
            pieces = self._known.get(key)
            if pieces is None:
                pieces = self._known[key] = tokenizer_at(path)
            return pieces


def encodable(text: str) -> str:
    """Return *text* without lone surrogates, at unchanged offsets."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.translate(_SURROGATES)
    return text

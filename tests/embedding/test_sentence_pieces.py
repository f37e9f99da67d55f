"""A file of sentencepiece as a model's tokenizer: pieces, their places, and one copy for a process."""

import io
from pathlib import Path

import pytest
import sentencepiece

from memd.embedding import UnavailableError
from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.model_folder import read_folder
from memd.embedding.tokenizer import SentencePieces, Tokenizers, WordPieces, tokenizer_at

TEXTS = [
    "the heron stands in shallow water", "der Reiher steht im Wasser", "苍鹭站在浅水里", "кот спит дома",
] * 20  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny file with the rules of the multilingual model, and its ids of special pieces."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=made, vocab_size=80, hard_vocab_limit=False,
        bos_id=0, pad_id=1, eos_id=2, unk_id=3, normalization_rule_name="nmt_nfkc", minloglevel=2,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("pieces") / "memd.sentencepiece"
    path.write_bytes(made.getvalue())
    return path


@pytest.mark.parametrize(
    "text", [*TEXTS[:4], "", " \n", "a\0b", "\ud800", "x\udcff", "🚀 ok", "ﬁne  ﬁsh", "한국"]
)
def test_pieces_are_counted_and_have_places(path: Path, text: str):
    pieces = tokenizer_at(path)
    assert isinstance(pieces, SentencePieces)
    spans = pieces.spans(text)
    assert pieces.count(text) == len(spans)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    ids = pieces.ids(text, 1_000)
    assert (ids[0], ids[-1], len(ids)) == (0, 2, len(spans) + pieces.special_tokens)
    assert pieces.ids(text, 1) == [*ids[:2], 2][: len(ids)]


def test_words_are_found_at_their_places(path: Path):
    text = "苍鹭 water"
    [start] = {text[at:end][0] for at, end in tokenizer_at(path).spans(text) if at >= 3} & {"w"}
    assert start == "w"


def test_a_file_that_is_broken_or_missing_is_named(tmp_path: Path):
    broken = tmp_path / "memd.sentencepiece"
    with pytest.raises(UnavailableError, match=r"memd\.sentencepiece"):
        tokenizer_at(broken).count("a")
    broken.write_bytes(b"no model")
    with pytest.raises(UnavailableError, match=r"memd\.sentencepiece"):
        tokenizer_at(broken).count("a")


def test_a_process_has_one_tokenizer_for_a_file(path: Path, tmp_path: Path):
    """The chunker and the model share it; a replaced file has another one."""
    known = Tokenizers()
    first = known.at(path)
    assert known.at(path) is first
    assert isinstance(known.at(TOKENIZER_FILE), WordPieces)
    moved = tmp_path / "memd.sentencepiece"
    moved.write_bytes(path.read_bytes())
    before = known.at(moved)
    moved.unlink()
    (tmp_path / "other").write_bytes(path.read_bytes())
    (tmp_path / "other").rename(moved)
    assert known.at(moved) is not before


def test_a_folder_may_have_such_a_file(path: Path, tmp_path: Path):
    """Instead of a tokenizer.json, which is preferred where there is one."""
    (tmp_path / "model.onnx").write_bytes(b"")
    (tmp_path / path.name).write_bytes(path.read_bytes())
    assert read_folder(tmp_path).tokenizer_file == tmp_path / path.name
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    assert read_folder(tmp_path).tokenizer_file == tmp_path / "tokenizer.json"

"""The tokenizer cuts as the model reads, and loses nothing."""

import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from memd.config import UserConfig, WorkspaceConfig
from memd.embedding import UnavailableError
from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.provider import Providers
from memd.embedding.tokenizer import READ_CHARACTERS, WordPieces

PIECES = WordPieces(TOKENIZER_FILE)


def test_a_text_of_250_pieces_is_not_cut_at_128():
    """What the published file does on its own account, cutting at 128, does not happen."""
    assert PIECES.count("word " * 250) == 250
    assert len(PIECES.spans("word " * 250)) == 250
    assert len(PIECES.ids("word " * 250, 254)) == 252


def test_settings_in_the_file_are_overruled(tmp_path: Path):
    from tokenizers import Tokenizer

    published = Tokenizer.from_file(str(TOKENIZER_FILE))
    published.enable_truncation(128)
    published.enable_padding(length=128)
    published.save(str(tmp_path / "tokenizer.json"))
    pieces = WordPieces(tmp_path / "tokenizer.json")
    assert pieces.count("word " * 250) == 250
    assert pieces.ids("word", 254) == PIECES.ids("word", 254)


def test_no_text_gets_more_pieces_than_it_may():
    """Special tokens included, 254 pieces make 256 ids, the last of them [SEP]."""
    ids = PIECES.ids("antidisestablishmentarianism " * 400, 254)
    assert (len(ids), ids[0], ids[-1]) == (256, 101, 102)


def test_spans_are_offsets_of_the_text_as_given():
    text = "Café \ud83d 🚀 déjà 会議 e\u0301te\u0301 end"
    spans = PIECES.spans(text)
    assert [text[start:end] for start, end in spans][-1] == "end"
    assert "Café" in [text[start:end] for start, end in spans]
    assert "会" in [text[start:end] for start, end in spans]
    assert all(0 <= start < end <= len(text) for start, end in spans)


@pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", "\udfff\0\ud800", "\u200b", "\ufeff"])
def test_odd_texts_are_counted(text: str):
    assert PIECES.count(text) == len(PIECES.spans(text)) <= 3
    assert PIECES.ids(text, 254)[0] == 101


def test_a_huge_text_is_read_to_a_bound():
    """Embedding a megabyte reads its beginning only; counting still counts all of it."""
    huge = "a b " * 50_000
    assert PIECES.ids(huge, 10**6) == PIECES.ids(huge[:READ_CHARACTERS], 10**6)
    assert PIECES.count(huge) == 100_000


def test_a_broken_file_is_named(tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(UnavailableError, match=r"tokenizer\.json is not a tokenizer") as caught:
        WordPieces(path).load()
    assert caught.value.reason == "model-failed"


def test_the_hub_client_is_never_imported():
    """Tokenizing and embedding leave the client of the model hub, and every HTTP client, unimported."""
    script = (
        "import sys; from memd.embedding.onnx import OnnxEmbedder; OnnxEmbedder().embed_documents(['a']);"
        "print(sorted({'huggingface_hub', 'requests', 'httpx', 'urllib3', 'hf_xet'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_tokenizer_that_nothing_uses_is_not_kept():
    providers, config = Providers(), WorkspaceConfig()
    pieces = providers.tokenizer_for(config, UserConfig())[0].load()
    assert providers.tokenizer_for(config, UserConfig())[0] is pieces
    known = weakref.ref(pieces)
    del pieces
    assert known() is None

"""An Ollama server is asked rightly; whatever it does instead of answering is an EmbedderError."""

import array
import hashlib
import json
import math
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from http_server import HttpServer
from patience import PATIENCE, ran

from memd.embedding import UnavailableError
from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.queue import Keeper
from memd.embedding.servers import OllamaEmbedder
from memd.embedding.tokenizer import WordPieces

DIGEST = "0a109f422b47e3a30ba2b10eca18548e944e8a23073ee3f3e947efcf3c45e59f"
PIECES = WordPieces(TOKENIZER_FILE)


class Server(HttpServer):
    """Speaks the two requests of Ollama that memd makes; a test may have it misbehave."""

    def __init__(self) -> None:
        self.asked: list[dict] = []  # bodies of /api/embed
        self.dim = 768
        self.digest = DIGEST
        self.reply = None  # instead of /api/embed: a function of the handler
        self.start()

    def get(self, asked):
        names = ("nomic-embed-text", "other")
        asked.answer({"models": [{"name": f"{name}:latest", "digest": self.digest} for name in names]})

    def post(self, asked, body):
        self.asked.append(body)
        if self.reply is not None:
            self.reply(asked)
        else:
            asked.answer({"embeddings": [self.vector(text) for text in body["input"]]})

    def vector(self, text: str) -> list[float]:
        raw = hashlib.shake_256(text.encode()).digest(self.dim)
        return [byte - 127.5 for byte in raw]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def embedder(
    server: Server, model: str = "nomic-embed-text", timeout_s: float = 5 * PATIENCE
) -> OllamaEmbedder:
    return OllamaEmbedder(server.address, model, timeout_s, tokenizer=PIECES)


def unit(numbers: list[float]) -> bytes:
    length = math.hypot(*numbers)
    return array.array("f", [number / length for number in numbers]).tobytes()


def test_vectors_have_length_1_and_the_servers_direction(server: Server):
    found = embedder(server).embed_documents([f"note {number}" for number in range(20)])
    assert found == [unit(server.vector(f"search_document: note {number}")) for number in range(20)]
    assert math.hypot(*array.array("f", found[0])) == pytest.approx(1, abs=1e-6)


def test_texts_are_sent_in_batches(server: Server):
    model = embedder(server)
    server.asked.clear()
    model.embed_documents(["text"] * 20)
    assert [len(body["input"]) for body in server.asked] == [8, 8, 4]
    assert {body["model"] for body in server.asked} == {"nomic-embed-text"}


def test_nomic_gets_its_prefixes_and_others_none(server: Server):
    """nomic-embed-text was trained with a prefix for each side; an unknown model is asked as it is."""
    for model, prefixes in (
        ("nomic-embed-text:latest", ("search_query: ", "search_document: ")),
        ("other", ("", "")),
    ):
        asked = embedder(server, model)
        server.asked.clear()
        asked.embed_query("tabs")
        asked.embed_documents(["tabs"])
        assert [body["input"] for body in server.asked] == [[prefixes[0] + "tabs"], [prefixes[1] + "tabs"]]


def test_the_id_names_the_file_behind_the_name(server: Server):
    """The digest is part of model_id: after `ollama pull` the same name may be another space."""
    model = embedder(server)
    assert model.model_id == f"ollama:nomic-embed-text@{DIGEST[:16]}"
    assert (model.dim, model.max_tokens, model.scripts) == (768, 2_040, frozenset({"Latin"}))
    assert model.tokenizer.count("word " * 250) == 250


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "🚀", "x" * 100_000])
def test_any_text_is_sent(server: Server, text: str):
    assert len(embedder(server).embed_query(text)) == 4 * 768


def test_a_model_that_was_not_pulled_is_named(server: Server):
    with pytest.raises(
        UnavailableError, match=r"no model 'absent:latest'\. Run: ollama pull absent"
    ) as caught:
        embedder(server, "absent")
    assert server.address in str(caught.value)


def test_another_dimension_is_refused(server: Server):
    """A model that was replaced behind its name gives no vector of another space."""
    model = embedder(server)
    server.dim = 384
    with pytest.raises(UnavailableError, match="gave 384 dimensions for 'nomic-embed-text', which had 768"):
        model.embed_query("tabs")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (lambda peer: peer.answer({"error": "out of memory"}, 500), "status 500: .*out of memory"),
        (lambda peer: peer.answer(b"", 301), "status 301"),
        (lambda peer: peer.answer(b"<html>"), "not JSON"),
        (lambda peer: peer.answer([1]), "with a list"),
        (lambda peer: peer.answer({"embeddings": []}), "did not give 1 embeddings"),
        (lambda peer: peer.answer({"embedding": [1, 2]}), "did not give 1 embeddings"),
        (lambda peer: peer.answer({"embeddings": [["a"]]}), "not a list of numbers"),
        (
            lambda peer: peer.answer({"embeddings": [{str(n): n for n in range(768)}]}),
            "not a list of numbers",
        ),
        (lambda peer: peer.answer({"embeddings": ["1" * 768]}), "not a list of numbers"),
        (lambda peer: peer.answer({"embeddings": [["1"] * 768]}), "not a list of numbers"),
        (lambda peer: peer.answer({"embeddings": [[True] * 768]}), "not a list of numbers"),
        (lambda peer: peer.answer({"embeddings": [True]}), "not a list of numbers"),
        (lambda peer: peer.answer({"embeddings": [[10**400] * 768]}), "a number that is not finite"),
        (lambda peer: peer.answer({"embeddings": [[0] * 768]}), r"length 0\.0"),
        (lambda peer: peer.answer(json.dumps({"embeddings": [[math.nan] * 768]}).encode()), "length nan"),
        (lambda peer: peer.wfile.write(b"what?\r\n\r\n"), "BadStatusLine"),
        (lambda peer: peer.connection.close(), "ollama serve"),
        (lambda peer: peer.answer(b" " * (17 * 1024 * 1024)), "more than 16777216 bytes"),
    ],
)
def test_a_wrong_answer_is_an_error_that_names_the_server(server: Server, reply, words: str):
    model = embedder(server)
    server.reply = reply
    with pytest.raises(UnavailableError, match=words) as caught:
        model.embed_query("tabs")
    assert server.address in str(caught.value)
    assert caught.value.reason == "model-failed"


def test_an_answer_that_breaks_off_is_an_error(server: Server):
    model = embedder(server)

    def half(peer):
        peer.send_response(200)
        peer.send_header("Content-Length", "1000")
        peer.end_headers()
        peer.wfile.write(b'{"embeddings": [[1')

    server.reply = half
    with pytest.raises(UnavailableError, match="does not answer"):
        model.embed_query("tabs")


def test_a_server_that_hangs_is_slow(server: Server):
    model = embedder(server, timeout_s=0.3)
    is_left = threading.Event()
    server.reply = lambda _: is_left.wait(20 * PATIENCE)
    start = time.monotonic()
    with pytest.raises(UnavailableError, match=r"did not answer /api/embed within 0\.3 s") as caught:
        model.embed_query("tabs")
    assert caught.value.reason == "model-slow"
    assert time.monotonic() - start < 10 * PATIENCE
    is_left.set()


def test_a_server_that_drips_is_slow(server: Server):
    """A byte now and then does not stretch the time: it is that of the whole request."""
    model = embedder(server, timeout_s=0.5)

    def drip(peer):
        peer.send_response(200)
        peer.send_header("Content-Length", "1000")
        peer.end_headers()
        for _ in range(200 * PATIENCE):  # until nobody listens
            peer.wfile.write(b" ")
            time.sleep(0.1)

    server.reply = drip
    start = time.monotonic()
    with pytest.raises(UnavailableError) as caught:
        model.embed_query("tabs")
    assert caught.value.reason == "model-slow"
    assert time.monotonic() - start < 10 * PATIENCE


def test_a_server_that_comes_back_is_used_again(server: Server):
    model = embedder(server)
    before = model.embed_query("tabs")
    server.stop()
    with pytest.raises(UnavailableError, match=r"does not answer /api/embed .*ollama serve"):
        model.embed_query("tabs")
    server.start()
    assert model.embed_query("tabs") == before


def test_a_server_that_starts_later_is_found():
    """Memd may start before Ollama: the model is there soon after the server is."""
    first = Server()
    first.stop()
    keeper = Keeper(
        lambda: OllamaEmbedder(first.address, "nomic-embed-text", 5, tokenizer=PIECES), retry_s=(0.05, 0.2)
    )
    while keeper.state == "loading":
        time.sleep(0.01)
    assert (keeper.state, keeper.reason) == ("failed", "model-failed")
    first.start()
    try:
        while keeper.state != "ready":
            time.sleep(0.01)
        assert keeper.error is None
    finally:
        keeper.free(5)
        first.stop()


@pytest.mark.parametrize("address", ["http://", "http://127.0.0.1:99999", "nonsense", "http://127.0.0.1:x"])
def test_an_impossible_address_is_an_error(address: str):
    with pytest.raises(UnavailableError, match="does not answer"):
        OllamaEmbedder(address, "nomic-embed-text", 1, tokenizer=PIECES)


def test_a_closed_embedder_asks_no_more(server: Server):
    model = embedder(server)
    model.close()
    server.asked.clear()
    with pytest.raises(UnavailableError, match="closed"):
        model.embed_query("tabs")
    assert server.asked == []


def test_it_needs_no_numpy(server: Server):
    script = f"""
import sys
sys.modules["numpy"] = None
from memd.embedding.servers import OllamaEmbedder
print(len(OllamaEmbedder({server.address!r}, "nomic-embed-text", 5, tokenizer=None).embed_query("tabs")))
"""
    done = ran([sys.executable, "-c", script])
    assert (done.stdout.strip(), done.stderr) == ("3072", "")


def test_a_model_that_is_pulled_anew_under_its_name_gives_no_vector_any_more(server):
    """Its vectors are another space: neither a query nor a text gets one, whatever the dimension."""
    embedder = OllamaEmbedder(server.address, "other", timeout_s=5 * PATIENCE, tokenizer=PIECES)
    server.digest = "f" * 64
    for ask in (lambda: embedder.embed_query("word"), lambda: embedder.embed_documents(["word"])):
        with pytest.raises(UnavailableError, match="another model under the name"):
            ask()

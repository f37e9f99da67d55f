"""Servers of models are asked rightly; whatever one does instead of answering is an UnavailableError.

A key of the OpenAI embeddings API is sent to its server and shown nowhere.
"""

import array
import hashlib
import json
import math
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from daemon_process import until
from http_server import HttpServer
from model_server import ModelServer
from patience import PATIENCE, ran

from memd.config import InputType, OpenAIServer, UserConfig, WorkspaceConfig
from memd.embedding import UnavailableError
from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.provider import Providers
from memd.embedding.queue import Keeper
from memd.embedding.servers import OllamaEmbedder, OpenAIEmbedder
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
def ollama() -> Iterator[Server]:
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


def test_vectors_have_length_1_and_the_servers_direction(ollama: Server):
    found = embedder(ollama).embed_documents([f"note {number}" for number in range(20)])
    assert found == [unit(ollama.vector(f"search_document: note {number}")) for number in range(20)]
    assert math.hypot(*array.array("f", found[0])) == pytest.approx(1, abs=1e-6)


def test_texts_are_sent_in_batches(ollama: Server):
    model = embedder(ollama)
    ollama.asked.clear()
    model.embed_documents(["text"] * 20)
    assert [len(body["input"]) for body in ollama.asked] == [8, 8, 4]
    assert {body["model"] for body in ollama.asked} == {"nomic-embed-text"}


def test_nomic_gets_its_prefixes_and_others_none(ollama: Server):
    """nomic-embed-text was trained with a prefix for each side; an unknown model is asked as it is."""
    for model, prefixes in (
        ("nomic-embed-text:latest", ("search_query: ", "search_document: ")),
        ("other", ("", "")),
    ):
        asked = embedder(ollama, model)
        ollama.asked.clear()
        asked.embed_queries(["tabs"])[0]
        asked.embed_documents(["tabs"])
        assert [body["input"] for body in ollama.asked] == [[prefixes[0] + "tabs"], [prefixes[1] + "tabs"]]


def test_the_id_names_the_file_behind_the_name(ollama: Server):
    """The digest is part of model_id: after `ollama pull` the same name may be another space."""
    model = embedder(ollama)
    assert model.model_id == f"ollama:nomic-embed-text@{DIGEST[:16]}"
    assert (model.dim, model.max_tokens, model.scripts) == (768, 2_040, frozenset({"Latin"}))
    assert model.tokenizer.count("word " * 250) == 250


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "🚀", "x" * 100_000])
def test_any_text_is_sent(ollama: Server, text: str):
    assert len(embedder(ollama).embed_queries([text])[0]) == 4 * 768


def test_a_model_that_was_not_pulled_is_named(ollama: Server):
    with pytest.raises(
        UnavailableError, match=r"no model 'absent:latest'\. Run: ollama pull absent"
    ) as caught:
        embedder(ollama, "absent")
    assert ollama.address in str(caught.value)


def test_another_dimension_is_refused(ollama: Server):
    """A model that was replaced behind its name gives no vector of another space."""
    model = embedder(ollama)
    ollama.dim = 384
    with pytest.raises(UnavailableError, match="gave 384 dimensions for 'nomic-embed-text', which had 768"):
        model.embed_queries(["tabs"])[0]


def has_failed(model: OllamaEmbedder | OpenAIEmbedder, server: HttpServer, words: str) -> None:
    """Assert that a query is an error with these words and the server's address."""
    with pytest.raises(UnavailableError, match=words) as caught:
        model.embed_queries(["tabs"])[0]
    assert server.address in str(caught.value)
    assert caught.value.reason == "model-failed"


def half(peer):
    peer.send_response(200)
    peer.send_header("Content-Length", "1000")
    peer.end_headers()
    peer.wfile.write(b'{"embeddings": [[1')


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (half, "does not answer"),
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
def test_a_wrong_answer_of_ollama_is_an_error(ollama: Server, reply, words: str):
    model = embedder(ollama)
    ollama.reply = reply
    has_failed(model, ollama, words)


def hang(_, is_left):
    is_left.wait(20 * PATIENCE)


def drip(peer, is_left):
    peer.send_response(200)
    peer.send_header("Content-Length", "1000")
    peer.end_headers()
    while not is_left.wait(0.1):
        peer.wfile.write(b" ")


@pytest.mark.parametrize("reply", [hang, drip])
def test_a_server_that_hangs_or_drips_is_slow(ollama: Server, reply):
    """A byte now and then does not stretch the time: it is that of the whole request."""
    model = embedder(ollama, timeout_s=0.3)
    is_left = threading.Event()
    ollama.reply = lambda peer: reply(peer, is_left)
    start = time.monotonic()
    with pytest.raises(UnavailableError, match=r"did not answer /api/embed within 0\.3 s") as caught:
        model.embed_queries(["tabs"])[0]
    assert caught.value.reason == "model-slow"
    assert time.monotonic() - start < 10 * PATIENCE
    is_left.set()


def test_a_server_that_comes_back_is_used_again(ollama: Server):
    model = embedder(ollama)
    before = model.embed_queries(["tabs"])[0]
    ollama.stop()
    with pytest.raises(UnavailableError, match=r"does not answer /api/embed .*ollama serve"):
        model.embed_queries(["tabs"])[0]
    ollama.start()
    assert model.embed_queries(["tabs"])[0] == before


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


def test_a_closed_embedder_asks_no_more(ollama: Server):
    model = embedder(ollama)
    model.close()
    ollama.asked.clear()
    with pytest.raises(UnavailableError, match="closed"):
        model.embed_queries(["tabs"])[0]
    assert ollama.asked == []


def test_it_needs_no_numpy(ollama: Server):
    script = f"""
import sys
sys.modules["numpy"] = None
from memd.embedding.servers import OllamaEmbedder
asked = OllamaEmbedder({ollama.address!r}, "nomic-embed-text", 5, tokenizer=None)
print(len(asked.embed_queries(["tabs"])[0]))
"""
    done = ran([sys.executable, "-c", script])
    assert (done.stdout.strip(), done.stderr) == ("3072", "")


def test_a_model_that_is_pulled_anew_under_its_name_gives_no_vector_any_more(ollama):
    """Its vectors are another space: neither a query nor a text gets one, whatever the dimension."""
    embedder = OllamaEmbedder(ollama.address, "other", timeout_s=5 * PATIENCE, tokenizer=PIECES)
    ollama.digest = "f" * 64
    for ask in (lambda: embedder.embed_queries(["word"])[0], lambda: embedder.embed_documents(["word"])):
        with pytest.raises(UnavailableError, match="another model under the name"):
            ask()


# The OpenAI API

KEY = "sk-0123456789abcdef"
PREFIXES = OpenAIServer(query_prefix="search_query: ", document_prefix="search_document: ")


def of_openai(server: ModelServer, how: OpenAIServer = PREFIXES, timeout_s: float = 5) -> OpenAIEmbedder:
    return OpenAIEmbedder(server.address, "nomic", timeout_s, server=how, tokenizer=PIECES)


def test_vectors_have_length_1_and_the_order_of_the_texts(server: ModelServer):
    texts = ["x" * number for number in range(20)]
    found = of_openai(server).embed_documents(texts)
    assert found == [unit(server.vector(f"search_document: {text}")) for text in texts]
    assert server.documents == [f"search_document: {text}" for text in texts]


def test_a_query_has_its_own_prefix(server: ModelServer):
    assert of_openai(server).embed_queries(["tabs"])[0] == unit(server.vector("search_query: tabs"))
    assert of_openai(server, OpenAIServer()).embed_queries(["tabs"])[0] == unit(server.vector("tabs"))


def test_a_base_address_may_end_in_v1(server: ModelServer):
    """As the documentation of most servers writes it."""
    model = OpenAIEmbedder(f"{server.address}/v1/", "nomic", 5, server=PREFIXES, tokenizer=PIECES)
    assert model.model_id == of_openai(server).model_id


def test_the_id_changes_with_the_prefixes(server: ModelServer):
    """Vectors of other prefixes are another space; a key is no part of it."""
    known = of_openai(server).model_id
    assert known.startswith("openai:nomic@")
    assert of_openai(server, OpenAIServer()).model_id != known
    with_key = OpenAIServer(query_prefix="search_query: ", document_prefix="search_document: ", api_key=KEY)
    assert of_openai(server, with_key).model_id == known


def test_queries_and_documents_may_have_their_own_models(server: ModelServer):
    model = of_openai(server, OpenAIServer(query_model="small", document_model="large"))
    model.embed_documents(["a note"])
    model.embed_queries(["tabs"])[0]
    asked = [(body["model"], body["input"]) for body in server.asked]
    assert sorted(asked[:2]) == [("large", ["memd"]), ("small", ["memd"])]
    assert asked[2:] == [("large", ["a note"]), ("small", ["tabs"])]
    server.asked.clear()
    of_openai(server, OpenAIServer(query_model="small")).embed_documents(["a note"])
    assert {body["model"] for body in server.asked} == {"small", "nomic"}


def test_the_server_is_told_what_is_a_query(server: ModelServer):
    """`input_type` has the values that the user names, and is sent only if it is set."""
    model = of_openai(server, OpenAIServer(input_type=InputType(query="query", document="passage")))
    model.embed_documents(["a note"])
    model.embed_queries(["tabs"])[0]
    assert [body["input_type"] for body in server.asked] == ["query", "passage", "query"]
    server.asked.clear()
    of_openai(server).embed_queries(["tabs"])[0]
    assert all(body.keys() == {"model", "input"} for body in server.asked)


def test_models_of_two_dimensions_are_refused(server: ModelServer):
    server.dims["large"] = 3
    with pytest.raises(
        UnavailableError, match=r"3 dimensions for 'large' and 2 dimensions for 'small'.*query_model"
    ):
        of_openai(server, OpenAIServer(query_model="small", document_model="large"))


def test_other_models_and_input_types_are_another_vector_space(server: ModelServer):
    """Every setting counts; the name alone of the same models does not, nor in which place it was set."""
    kinds = [InputType(query="query", document=document) for document in ("document", "passage")]
    settings = [
        OpenAIServer(), OpenAIServer(query_model="small"), OpenAIServer(document_model="small"),
        OpenAIServer(query_model="small", document_model="small"),
        *(OpenAIServer(input_type=kind) for kind in kinds),
    ]  # fmt: skip
    assert len({of_openai(server, each).model_id for each in settings}) == len(settings)
    named = OpenAIServer(query_model="nomic", document_model="nomic")
    assert of_openai(server, named).model_id == of_openai(server, OpenAIServer()).model_id


def test_the_id_of_a_model_without_these_settings_is_that_of_earlier_versions(server: ModelServer):
    """So that an update of memd embeds nothing again."""
    space = repr((server.address, 2, (PREFIXES.query_prefix, PREFIXES.document_prefix)))
    expected = hashlib.sha256(space.encode()).hexdigest()[:16]
    assert of_openai(server).model_id == f"openai:nomic@{expected}"


def test_the_key_is_sent_and_never_quoted(server: ModelServer, monkeypatch: pytest.MonkeyPatch):
    """From the configuration or the environment; a server that quotes it does not get it into an error."""
    of_openai(server, OpenAIServer())
    of_openai(server, OpenAIServer(api_key=KEY))
    monkeypatch.setenv("EMBEDDINGS_KEY", f"{KEY}\n")
    model = of_openai(server, OpenAIServer(api_key_env="EMBEDDINGS_KEY"))
    assert server.authorizations == [None, f"Bearer {KEY}", f"Bearer {KEY}"]
    server.behaviour = "fail"
    with pytest.raises(UnavailableError, match=r"status 500: .*the API key") as caught:
        model.embed_queries(["tabs"])[0]
    assert KEY not in str(caught.value)
    assert KEY not in repr(OpenAIServer(api_key=KEY))


def test_a_key_that_cannot_be_sent_is_named_by_its_place(server: ModelServer, monkeypatch):
    monkeypatch.delenv("EMBEDDINGS_KEY", raising=False)
    with pytest.raises(UnavailableError, match=r"api_key_env = 'EMBEDDINGS_KEY', which is not in memd's"):
        of_openai(server, OpenAIServer(api_key_env="EMBEDDINGS_KEY"))
    with pytest.raises(UnavailableError, match="characters that a header cannot contain") as caught:
        of_openai(server, OpenAIServer(api_key=f"{KEY}\nX-Other: 1"))
    assert KEY not in str(caught.value)
    assert server.authorizations == []


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([], "did not give 1 embeddings"),
        ([{"embedding": [1, 2]}], "did not give 1 embeddings"),
        ([{"index": 1, "embedding": [1, 2]}], "did not give 1 embeddings"),
        ([{"index": 0, "embedding": "AACAPw=="}], "not a list of numbers"),
        ([{"index": 0, "embedding": [1.0, 2.0]}] * 2, "did not give 1 embeddings"),
        ([{"index": 0}], "not a list of numbers"),
        ([{"index": 0, "embedding": [1, 2, 3]}], "gave 3 dimensions for 'nomic', which had 2"),
        ([{"index": 0, "embedding": [0, 0]}], r"length 0\.0"),
    ],
)
def test_wrong_rows_are_an_error(server: ModelServer, vectors, words: str):
    model = of_openai(server)
    server.rows = vectors
    has_failed(model, server, words)


def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(UnavailableError, match=r"does not answer .*Is it running"):
        of_openai(SimpleNamespace(address="http://127.0.0.1:1"))


def test_chunks_are_as_long_as_the_user_says_that_the_model_reads():
    """The API does not tell; without a word of the user it is what an unknown model of Ollama gets."""
    config = WorkspaceConfig(provider="openai", address="http://127.0.0.1:8080")
    user = UserConfig(openai={config.address: OpenAIServer(max_tokens=510)})
    providers = Providers()
    assert providers.tokenizer_for(config, user)[1] == 510
    assert providers.tokenizer_for(config, UserConfig())[1] == 254


def test_a_key_goes_to_its_own_address_alone(server: ModelServer):
    """A workspace that chooses another address which the user allows is not given it."""
    config = WorkspaceConfig(provider="openai", address=server.address)
    user = UserConfig(addresses=(server.address,), openai={"http://127.0.0.1:1": OpenAIServer(api_key=KEY)})
    providers = Providers()
    queue = providers.queue_for(config, user)
    assert queue is not None
    until(lambda: server.authorizations)
    providers.close()
    assert set(server.authorizations) == {None}

"""A server of the OpenAI embeddings API is asked rightly; its key is sent to it and shown nowhere."""

import array
import hashlib
import math
from types import SimpleNamespace

import pytest
from daemon_process import until
from model_server import ModelServer

from memd.config import InputType, OpenAIServer, UserConfig, WorkspaceConfig
from memd.embedding import UnavailableError
from memd.embedding.model import TOKENIZER_FILE
from memd.embedding.provider import Providers
from memd.embedding.servers import OpenAIEmbedder
from memd.embedding.tokenizer import WordPieces

PIECES = WordPieces(TOKENIZER_FILE)
KEY = "sk-0123456789abcdef"
PREFIXES = OpenAIServer(query_prefix="search_query: ", document_prefix="search_document: ")


def embedder(server: ModelServer, how: OpenAIServer = PREFIXES, timeout_s: float = 5) -> OpenAIEmbedder:
    return OpenAIEmbedder(server.address, "nomic", timeout_s, server=how, tokenizer=PIECES)


def unit(numbers: list[float]) -> bytes:
    length = math.hypot(*numbers)
    return array.array("f", [number / length for number in numbers]).tobytes()


def test_vectors_have_length_1_and_the_order_of_the_texts(server: ModelServer):
    texts = ["x" * number for number in range(20)]
    found = embedder(server).embed_documents(texts)
    assert found == [unit(server.vector(f"search_document: {text}")) for text in texts]
    assert server.documents == [f"search_document: {text}" for text in texts]


def test_a_query_has_its_own_prefix(server: ModelServer):
    assert embedder(server).embed_query("tabs") == unit(server.vector("search_query: tabs"))
    assert embedder(server, OpenAIServer()).embed_query("tabs") == unit(server.vector("tabs"))


def test_a_base_address_may_end_in_v1(server: ModelServer):
    """As the documentation of most servers writes it."""
    model = OpenAIEmbedder(f"{server.address}/v1/", "nomic", 5, server=PREFIXES, tokenizer=PIECES)
    assert model.model_id == embedder(server).model_id


def test_the_id_changes_with_the_prefixes(server: ModelServer):
    """Vectors of other prefixes are another space; a key is no part of it."""
    known = embedder(server).model_id
    assert known.startswith("openai:nomic@")
    assert embedder(server, OpenAIServer()).model_id != known
    with_key = OpenAIServer(query_prefix="search_query: ", document_prefix="search_document: ", api_key=KEY)
    assert embedder(server, with_key).model_id == known


def test_queries_and_documents_may_have_their_own_models(server: ModelServer):
    model = embedder(server, OpenAIServer(query_model="small", document_model="large"))
    model.embed_documents(["a note"])
    model.embed_query("tabs")
    asked = [(body["model"], body["input"]) for body in server.asked]
    assert sorted(asked[:2]) == [("large", ["memd"]), ("small", ["memd"])]
    assert asked[2:] == [("large", ["a note"]), ("small", ["tabs"])]
    server.asked.clear()
    embedder(server, OpenAIServer(query_model="small")).embed_documents(["a note"])
    assert {body["model"] for body in server.asked} == {"small", "nomic"}


def test_the_server_is_told_what_is_a_query(server: ModelServer):
    """`input_type` has the values that the user names, and is sent only if it is set."""
    model = embedder(server, OpenAIServer(input_type=InputType(query="query", document="passage")))
    model.embed_documents(["a note"])
    model.embed_query("tabs")
    assert [body["input_type"] for body in server.asked] == ["query", "passage", "query"]
    server.asked.clear()
    embedder(server).embed_query("tabs")
    assert all(body.keys() == {"model", "input"} for body in server.asked)


def test_models_of_two_dimensions_are_refused(server: ModelServer):
    server.dims["large"] = 3
    with pytest.raises(
        UnavailableError, match=r"3 dimensions for 'large' and 2 dimensions for 'small'.*query_model"
    ):
        embedder(server, OpenAIServer(query_model="small", document_model="large"))


def test_other_models_and_input_types_are_another_vector_space(server: ModelServer):
    """Every setting counts; the name alone of the same models does not, nor in which place it was set."""
    kinds = [InputType(query="query", document=document) for document in ("document", "passage")]
    settings = [
        OpenAIServer(), OpenAIServer(query_model="small"), OpenAIServer(document_model="small"),
        OpenAIServer(query_model="small", document_model="small"),
        *(OpenAIServer(input_type=kind) for kind in kinds),
    ]  # fmt: skip
    assert len({embedder(server, each).model_id for each in settings}) == len(settings)
    named = OpenAIServer(query_model="nomic", document_model="nomic")
    assert embedder(server, named).model_id == embedder(server, OpenAIServer()).model_id


def test_the_id_of_a_model_without_these_settings_is_that_of_earlier_versions(server: ModelServer):
    """So that an update of memd embeds nothing again."""
    space = repr((server.address, 2, (PREFIXES.query_prefix, PREFIXES.document_prefix)))
    expected = hashlib.sha256(space.encode()).hexdigest()[:16]
    assert embedder(server).model_id == f"openai:nomic@{expected}"


def test_the_key_is_sent_and_never_quoted(server: ModelServer, monkeypatch: pytest.MonkeyPatch):
    """From the configuration or the environment; a server that quotes it does not get it into an error."""
    embedder(server, OpenAIServer())
    embedder(server, OpenAIServer(api_key=KEY))
    monkeypatch.setenv("EMBEDDINGS_KEY", f"{KEY}\n")
    model = embedder(server, OpenAIServer(api_key_env="EMBEDDINGS_KEY"))
    assert server.authorizations == [None, f"Bearer {KEY}", f"Bearer {KEY}"]
    server.behaviour = "fail"
    with pytest.raises(UnavailableError, match=r"status 500: .*the API key") as caught:
        model.embed_query("tabs")
    assert KEY not in str(caught.value)
    assert KEY not in repr(OpenAIServer(api_key=KEY))


def test_a_key_that_cannot_be_sent_is_named_by_its_place(server: ModelServer, monkeypatch):
    monkeypatch.delenv("EMBEDDINGS_KEY", raising=False)
    with pytest.raises(UnavailableError, match=r"api_key_env = 'EMBEDDINGS_KEY', which is not in memd's"):
        embedder(server, OpenAIServer(api_key_env="EMBEDDINGS_KEY"))
    with pytest.raises(UnavailableError, match="characters that a header cannot contain") as caught:
        embedder(server, OpenAIServer(api_key=f"{KEY}\nX-Other: 1"))
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
def test_a_wrong_answer_is_an_error_that_names_the_server(server: ModelServer, vectors, words: str):
    model = embedder(server)
    server.rows = vectors
    with pytest.raises(UnavailableError, match=words) as caught:
        model.embed_query("tabs")
    assert server.address in str(caught.value)
    assert caught.value.reason == "model-failed"


def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(UnavailableError, match=r"does not answer .*Is it running"):
        embedder(SimpleNamespace(address="http://127.0.0.1:1"))


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

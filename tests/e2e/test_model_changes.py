"""Vectors when the model changes, dies, or is another one than it was.

No answer may hold vectors of two models: each hit's cosine is compared with what the one and the other
model give for that query and that note.
"""

import array
import hashlib
import json
import math
import re
from collections.abc import Iterator
from operator import mul
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, hurried, until
from model_server import ModelServer

from memd.embedding.onnx import OnnxEmbedder

ANIMALS = ("heron", "badger", "otter", "stoat", "wren", "kestrel", "adder", "newt")
ANIMALS += ("vole", "shrew", "lynx", "ibex", "marten", "raven", "jackdaw", "bittern")
DEEDS = (
    "sleeps by the weir", "hunts in the reeds", "was seen at dawn", "has left its nest", "crossed the road",
)  # fmt: skip
NOTES = {
    f"{animal}{number}.md": f"The {animal} {deed} on day {number}{animal[0]}."
    for animal in ANIMALS
    for number, deed in enumerate(DEEDS)
}
QUERY = "where does the otter sleep near the weir"
NEAR = 0.02  # quantised models give a little else in another batch


class Ollama(ModelServer):
    """Gives texts that share words near vectors; a test may have it die, wait or change its model."""

    def __init__(self) -> None:
        self.digest = "1" * 64
        self.dim = 96
        super().__init__()

    def get(self, asked):
        asked.answer({"models": [{"name": "nomic-embed-text:latest", "digest": self.digest}]})

    def vector(self, text: str) -> list[float]:
        """Return a vector of the space that this model file and dimension make: words that are shared."""
        vector = [0.01] * self.dim
        for word in re.findall(r"\w+", text.removeprefix("search_document: ").removeprefix("search_query: ")):
            drawn = hashlib.blake2b(
                f"{self.digest} {self.dim} {word.lower()}".encode(), digest_size=8
            ).digest()
            for byte in drawn:
                vector[byte % self.dim] += 1 if byte & 128 else -1
        return vector

    def cosines(self) -> dict[str, float]:
        """Return what this server's model makes of QUERY and each note."""
        return cosines(self.vector)

    @property
    def settings(self) -> dict:
        return {"provider": "ollama", "model": "nomic-embed-text", "address": self.address}


def cosines(vector) -> dict[str, float]:
    """Return the cosine of QUERY with each note."""
    asked = vector(QUERY)
    found = {}
    for path, text in NOTES.items():
        numbers = vector(text)
        found[path] = sum(map(mul, asked, numbers)) / math.hypot(*asked) / math.hypot(*numbers)
    return found


@pytest.fixture(scope="module")
def onnx() -> dict[str, float]:
    """What the shipped model makes of QUERY and each note."""
    model = OnnxEmbedder()
    found = cosines(lambda text: array.array("f", model.embed_queries([text])[0]).tolist())
    model.close()
    return found


@pytest.fixture
def server() -> Iterator[Ollama]:
    server = Ollama()
    yield server
    server.stop()


class Workspace:
    """One daemon and its one workspace."""

    def __init__(self, daemon: Daemon, root: Path) -> None:
        self.daemon = daemon
        self.root = root

    def add(self, **settings: object) -> "Workspace":
        """Register it with these settings and wait for its words."""
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in settings.items()]
        folder_of(self.root, {"memory/config.toml": "".join(lines)})
        self.daemon.add(self.root)
        return self

    def configure(self, **settings: object) -> None:
        self.daemon.call("workspace.configure", workspace=str(self.root), settings=settings)

    def status(self) -> dict:
        return self.daemon.status(self.root)

    def search(self, query: str = QUERY, mode: str = "hybrid", **params: object) -> dict:
        return self.daemon.call(
            "search", query=query, workspace=str(self.root), mode=mode, limit=100, min_score=0.0, **params
        )

    def is_whole(self, model: str) -> bool:
        """Tell whether a model's vectors answer, and all of them are there."""
        known = self.status()
        whole = known["state"] == "ready" and known["vectors"] == known["chunks"] and not known["building"]
        return whole and model in known["model_id"] and not self.search()["degraded"]

    def is_half_built(self) -> bool:
        """Tell whether a first batch of another model's vectors is there."""
        return 16 <= (self.status()["building"] or {}).get("done", 0) < len(NOTES)

    def until_whole(self, model: str) -> None:
        until(lambda: self.is_whole(model), 60)


@pytest.fixture
def workspace(tmp_path: Path, server: Ollama) -> Iterator[Workspace]:
    """A daemon that may ask the server, and a folder of notes that is not added yet."""
    yield from opened(tmp_path, server)


@pytest.fixture
def attentive(tmp_path: Path, server: Ollama) -> Iterator[Workspace]:
    """The same with a daemon that looks twice a second whether the model is another one."""
    yield from opened(tmp_path, server, under=hurried("memd.workspace.embed_loop.MODEL_POLL_S = 0.5"))


def opened(tmp_path: Path, server: Ollama, **options: list[str]) -> Iterator[Workspace]:
    """Start the daemon with *options*, and end it."""
    allowed = f'addresses = ["{server.address}"]\n'
    daemon = Daemon(folder_of(tmp_path / "home", {"config/memd/config.toml": allowed}))
    daemon.start(**options)
    yield Workspace(daemon, folder_of(tmp_path / "notes", {path: f"{NOTES[path]}\n" for path in NOTES}))
    server.answer_again()
    daemon.close()


def of_one_model(answer: dict, *models: dict[str, float]) -> int | None:
    """Return which model's cosines an answer has; None where it has none. Fail where they are mixed."""
    scores = {
        hit["path"]: hit["arms"]["vector"]["score"]
        for hit in answer["hits"]
        if hit["arms"]["vector"]["score"] is not None and hit["path"] in NOTES
    }
    if not scores:
        assert answer["mode"] == "keyword"
        return None
    fitting = [
        number
        for number, cosine in enumerate(models)
        if all(abs(score - cosine[path]) <= NEAR for path, score in scores.items())
    ]
    assert len(fitting) == 1, f"{scores} are of {fitting} of {len(models)} models"
    return fitting[0]


def answers_by_keyword(answer: dict, code: str) -> bool:
    """Tell whether the words are found and the answer names why that is all."""
    assert answer["mode"] == "keyword"
    assert "otter0.md" in [hit["path"] for hit in answer["hits"]]
    return code in answer["degraded"]


# The server


def test_a_server_that_dies_and_comes_back_is_named_and_used_again(workspace: Workspace, server: Ollama):
    workspace.add(**server.settings)
    workspace.until_whole("ollama:nomic-embed-text")
    assert of_one_model(workspace.search(), server.cosines()) == 0
    server.stop()
    until(lambda: answers_by_keyword(workspace.search(), "model-failed"))
    until(lambda: "model-failed" in workspace.status()["degraded"])
    (workspace.root / "late.md").write_text("A pangolin, while nobody can embed it.\n")
    until(lambda: workspace.daemon.found("pangolin", workspace=str(workspace.root)) == ["late.md"])
    assert answers_by_keyword(workspace.search(), "model-failed")
    server.start()
    workspace.until_whole("ollama:nomic-embed-text")
    assert of_one_model(workspace.search(), server.cosines()) == 0
    assert "late.md" in [hit["path"] for hit in workspace.search("pangolin", mode="vector")["hits"]]
    assert len(server.documents) == len(NOTES) + 1


def test_vectors_of_another_dimension_are_another_model(attentive: Workspace, server: Ollama):
    """The server gives other vectors behind the same name and digest: none is compared with the old ones."""
    workspace = attentive
    workspace.add(**server.settings)
    workspace.until_whole("ollama:nomic-embed-text")
    before = server.cosines()
    server.dim = 48
    after = server.cosines()
    seen = set()

    def is_mended() -> bool:
        answer = workspace.search()
        seen.add(of_one_model(answer, before, after))
        return bool(seen & {1}) and workspace.is_whole("ollama:nomic-embed-text")

    until(is_mended, 60)
    assert None in seen
    assert 0 not in seen


def test_a_model_that_was_pulled_anew_is_another_model(attentive: Workspace, server: Ollama):
    workspace = attentive
    workspace.add(**server.settings)
    workspace.until_whole("ollama:nomic-embed-text@1111")
    before = server.cosines()
    server.stop()
    until(lambda: answers_by_keyword(workspace.search(), "model-failed"))
    server.digest = "2" * 64
    server.start()
    until(
        lambda: (
            of_one_model(workspace.search(), before, server.cosines()) == 1
            and workspace.is_whole("ollama:nomic-embed-text@2222")
        ),
        60,
    )
    (workspace.root / "late.md").write_text("A pangolin, for the new model.\n")
    until(lambda: "late.md" in [hit["path"] for hit in workspace.search("pangolin", mode="vector")["hits"]])


# Another model


def test_another_model_is_built_beside_and_switched_to_whole(workspace: Workspace, server: Ollama, onnx):
    workspace.add()
    workspace.until_whole("")
    shipped = workspace.status()["model_id"]
    assert of_one_model(workspace.search(), onnx, server.cosines()) == 0
    server.answers = 40
    workspace.configure(**server.settings)
    until(workspace.is_half_built)
    known = workspace.status()
    assert known["building"]["model_id"].startswith("ollama:nomic-embed-text@")
    assert 16 <= known["building"]["done"] < known["building"]["total"] == len(NOTES)
    assert known["model_id"] == shipped
    assert "vectors-building" in known["degraded"]
    for mode in ("hybrid", "vector"):
        answer = workspace.search(mode=mode)
        assert answer["degraded"] == ["vectors-building"]
        assert of_one_model(answer) is None
    assert answers_by_keyword(workspace.search(), "vectors-building")
    (workspace.root / "late.md").write_text("A pangolin, while it is built.\n")
    until(lambda: workspace.daemon.found("pangolin", workspace=str(workspace.root)) == ["late.md"])
    switched(workspace, server, (onnx, server.cosines()), "ollama:nomic-embed-text")
    assert "late.md" in [hit["path"] for hit in workspace.search("pangolin", mode="vector")["hits"]]
    assert len(list(workspace.daemon.state.rglob("vectors.*.f32"))) == 1


def switched(workspace: Workspace, server: Ollama, models: tuple, model_id: str) -> None:
    """Let the server go on; look at every answer until the second of *models* has taken over."""
    server.answer_again()
    seen = []

    def is_done() -> bool:
        seen.append(of_one_model(workspace.search(), *models))
        return seen[-1] == 1 and workspace.is_whole(model_id)

    until(is_done, 60)
    assert seen == sorted(seen, key=lambda which: {0: 0, None: 1, 1: 2}[which])


def test_no_model_and_then_one(workspace: Workspace, onnx):
    workspace.add(provider="none")
    assert workspace.search()["degraded"] == []
    assert of_one_model(workspace.search(), onnx) is None
    workspace.configure(provider="onnx")
    workspace.until_whole("")
    assert of_one_model(workspace.search(), onnx) == 0
    workspace.configure(provider="none")
    assert of_one_model(workspace.search(), onnx) is None
    assert workspace.status()["degraded"] == []
    before = {path.name: path.stat().st_mtime_ns for path in workspace.daemon.state.rglob("vectors.*")}
    workspace.configure(provider="onnx")
    workspace.until_whole("")
    assert of_one_model(workspace.search(), onnx) == 0
    after = {path.name: path.stat().st_mtime_ns for path in workspace.daemon.state.rglob("vectors.*")}
    assert after == before


def test_no_model_while_another_is_built(workspace: Workspace, server: Ollama):
    workspace.add()
    workspace.until_whole("")
    server.answers = 40
    workspace.configure(**server.settings)
    until(lambda: workspace.status()["building"])
    workspace.configure(provider="none")
    until(lambda: workspace.status()["state"] == "ready")
    assert workspace.search()["degraded"] == []
    assert workspace.status()["degraded"] == []
    assert workspace.status()["building"] is None

"""A server of vectors for a daemon under test: it answers, keeps its caller waiting, or fails and quotes."""

import json
import math
import threading
from pathlib import Path
from typing import Any, Literal

from daemon_process import Daemon
from http_server import Asked, HttpServer

from memd.embedding.cosines import PAIRS_FILE

# Texts by which memd measures the cosines of a model.
MEASURED = {text for pair in json.loads(PAIRS_FILE.read_text(encoding="utf-8"))["pairs"] for text in pair}


class ModelServer(HttpServer):
    """Speaks the requests of Ollama and of the OpenAI API that memd makes, and behaves as it is told."""

    def __init__(self) -> None:
        self.behaviour: Literal["answer", "hang", "fail"] = "answer"
        self.hanging = threading.Event()  # somebody waits
        self.answers = math.inf  # so many texts of notes; then what is to be embedded hangs, and no query
        self.refuses_documents = False  # as an error, and answers queries
        self.documents: list[str] = []  # of notes that were asked for, in order, by its readers' prefix
        self.rows: list[Any] | None = None  # instead of those of the OpenAI API
        self.authorizations: list[str | None] = []  # header of each POST
        self.asked: list[dict[str, Any]] = []  # body of each POST, but for those of a measurement
        self.dims: dict[str, int] = {}  # of the models that do not have 2
        self._go_on = threading.Event()
        self.start()

    def get(self, asked: Asked) -> None:
        asked.answer({"models": [{"name": "nomic-embed-text:latest", "digest": "1" * 64}]})

    def post(self, asked: Asked, body: dict[str, Any]) -> None:
        texts = body["input"]
        if not _is_measurement(texts):
            self.asked.append(body)
        key = asked.headers["Authorization"]
        self.authorizations.append(key)
        documents = [
            text for text in texts if text.startswith("search_document: ") and not _is_measurement([text])
        ]
        self.documents += documents
        if self.behaviour == "hang" or (documents and len(self.documents) > self.answers):
            self.hanging.set()
            self._go_on.wait()
        if self.behaviour == "fail" or (self.refuses_documents and documents):
            asked.answer({"error": f"no vector for {json.dumps(body)}, {key}"}, status=500)
        elif asked.path == "/v1/embeddings":
            more = [1.0] * (self.dims.get(body["model"], 2) - 2)
            rows = [{"index": at, "embedding": self.vector(text) + more} for at, text in enumerate(texts)]
            # Any order is allowed.
            asked.answer({"object": "list", "data": rows[::-1] if self.rows is None else self.rows})
        else:
            asked.answer({"embeddings": [self.vector(text) for text in texts]})

    def vector(self, text: str) -> list[float]:
        """Return what stands for *text*: of another direction where its length is another, modulo 7."""
        return [1.0, 1.0 + len(text) % 7]

    def answer_again(self) -> None:
        """Let go who waits, and answer from now on."""
        self.behaviour, self.answers = "answer", math.inf
        self._go_on.set()

    def stop(self) -> None:
        self.answer_again()
        super().stop()

    def make_workspace(self, daemon: Daemon, root: Path, provider: str = "ollama") -> None:
        """Write a configuration that asks this server, and the user's leave to do so."""
        allowed = daemon.home / "config" / "memd"
        allowed.mkdir(parents=True, exist_ok=True)
        (allowed / "config.toml").write_text(f'addresses = ["{self.address}"]\n')
        (root / "memory").mkdir(parents=True)
        (root / "memory" / "config.toml").write_text(
            f'provider = "{provider}"\nmodel = "nomic-embed-text"\naddress = "{self.address}"\n'
        )


def _is_measurement(texts: str | list[str]) -> bool:
    listed = [texts] if isinstance(texts, str) else texts
    return all(text.partition(": ")[2] in MEASURED or text in MEASURED for text in listed)

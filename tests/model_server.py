"""A server of vectors for a daemon under test: it answers, keeps its caller waiting, or fails and quotes."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from daemon_process import Daemon

from memd.embedding.cosines import PAIRS_FILE

# Texts by which memd measures the cosines of a model.
MEASURED = {text for pair in json.loads(PAIRS_FILE.read_text(encoding="utf-8"))["pairs"] for text in pair}


class ModelServer:
    """Speaks the requests of Ollama and of the OpenAI API that memd makes, and behaves as it is told."""

    def __init__(self) -> None:
        self.behaviour: Literal["answer", "hang", "fail"] = "answer"
        self.hanging = threading.Event()  # somebody waits
        self.only_queries = False  # what is to be embedded hangs, queries are answered
        self.refuses_documents = False  # as an error, and answers queries
        self.documents: list[str] = []  # of notes that were asked for, in order, by its readers' prefix
        self.rows: list[Any] | None = None  # instead of those of the OpenAI API
        self.authorizations: list[str | None] = []  # header of each POST
        self.asked: list[dict[str, Any]] = []  # body of each POST, but for those of a measurement
        self.dims: dict[str, int] = {}  # of the models that do not have 2
        self._go_on = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer({"models": [{"name": "nomic-embed-text:latest", "digest": "1" * 64}]})

            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
                body = json.loads(asked)
                texts = body["input"]
                if not _is_measurement(texts):
                    server.asked.append(body)
                server.authorizations.append(self.headers["Authorization"])
                documents = [
                    text
                    for text in texts
                    if text.startswith("search_document: ") and not _is_measurement([text])
                ]
                server.documents += documents
                if server.behaviour == "hang" or (server.only_queries and documents):
                    server.hanging.set()
                    server._go_on.wait()
                if server.behaviour == "fail" or (server.refuses_documents and documents):
                    self.answer(
                        {"error": f"no vector for {asked}, {self.headers['Authorization']}"}, status=500
                    )
                    return
                if self.path == "/v1/embeddings":
                    more = [1.0] * (server.dims.get(body["model"], 2) - 2)
                    rows = [
                        {"index": at, "embedding": server.vector(text) + more}
                        for at, text in enumerate(texts)
                    ]
                    self.answer(
                        {"object": "list", "data": rows[::-1] if server.rows is None else server.rows}
                    )  # any order is allowed
                    return
                self.answer({"embeddings": [server.vector(text) for text in texts]})

            def answer(self, content: dict[str, Any], status: int = 200) -> None:
                raw = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        class Listener(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                pass  # whoever was killed does not wait for an answer

        self._http = Listener(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"

    @staticmethod
    def vector(text: str) -> list[float]:
        """Return what stands for *text*: of another direction where its length is another, modulo 7."""
        return [1.0, 1.0 + len(text) % 7]

    def answer_again(self) -> None:
        """Let go who waits, and answer from now on."""
        self.behaviour = "answer"
        self._go_on.set()

    def stop(self) -> None:
        self.answer_again()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

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

"""The other model: a server that speaks what memd asks of Ollama, and takes its time."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIM = 96
TEXT_S = 0.004  # a text: so that there is time to die in between


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({"models": [{"name": "nomic-embed-text:latest", "digest": "1" * 64}]})

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        time.sleep(TEXT_S * len(texts))
        self._answer({"embeddings": [_numbers(text) for text in texts]})

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _answer(self, content: dict[str, Any]) -> None:
        raw = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Whoever asked was killed."""


@contextmanager
def server() -> Iterator[str]:
    """Have it for a while, at the address that is given."""
    http = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _numbers(text: str) -> list[float]:
    """Return a direction that depends on what is asked, not on the prefixes that say why."""
    meant = text.split(": ", 1)[-1] if text.startswith("search_") else text
    return [byte - 127.5 for byte in hashlib.shake_256(meant.encode()).digest(DIM)]

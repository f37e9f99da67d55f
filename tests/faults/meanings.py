"""The other model: a server that speaks what memd asks of Ollama, and takes its time."""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from http_server import Asked, HttpServer

DIM = 96
TEXT_S = 0.004  # a text: so that there is time to die in between


class _Server(HttpServer):
    def get(self, asked: Asked) -> None:
        asked.answer({"models": [{"name": "nomic-embed-text:latest", "digest": "1" * 64}]})

    def post(self, asked: Asked, body: dict[str, Any]) -> None:
        texts = body["input"]
        time.sleep(TEXT_S * len(texts))
        asked.answer({"embeddings": [_numbers(text) for text in texts]})


@contextmanager
def server() -> Iterator[str]:
    """Have it for a while, at the address that is given."""
    http = _Server()
    http.start()
    try:
        yield http.address
    finally:
        http.stop()


def _numbers(text: str) -> list[float]:
    """Return a direction that depends on what is asked, not on the prefixes that say why."""
    meant = text.split(": ", 1)[-1] if text.startswith("search_") else text
    return [byte - 127.5 for byte in hashlib.shake_256(meant.encode()).digest(DIM)]

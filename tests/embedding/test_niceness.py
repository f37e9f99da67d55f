"""Notes are embedded behind all else that the machine does; queries are not."""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from patience import PATIENCE
from tests_support import WordHashEmbedder

from memd.embedding.queue import NOTES_NICENESS, EmbeddingQueue

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere a thread has no priority of its own"
)
NICE_FIELD = 16  # of /proc/PID/task/TID/stat behind the name: the 19th, as proc(5) counts


def niceness(thread: int) -> int:
    """Return that of a thread of this process."""
    facts = Path(f"/proc/self/task/{thread}/stat").read_text(encoding="utf-8", errors="replace")
    return int(facts.rpartition(")")[2].split()[NICE_FIELD])


class Watched(WordHashEmbedder):
    """Notes the priority that each text is embedded with."""

    def __init__(self) -> None:
        self.notes: list[int] = []
        self.queries: list[int] = []

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        self.notes.append(niceness(threading.get_native_id()))
        return [super(Watched, self).embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        self.queries.append(niceness(threading.get_native_id()))
        return super().embed_query(text)


class Elsewhere(Watched):
    """A model that another process runs."""

    remote = True


def test_notes_are_embedded_at_low_priority_and_queries_are_not() -> None:
    model, own = Watched(), niceness(threading.get_native_id())
    queue = EmbeddingQueue(lambda: model)
    queue.embed_documents([f"note {number}" for number in range(200)])
    queue.embed_queries(["heron"], timeout_s=10 * PATIENCE)[0]
    queue.close()
    assert set(model.notes) == {own + NOTES_NICENESS}
    assert set(model.queries) == {own}
    assert len(model.queries) == 1


def test_what_another_process_embeds_is_asked_for_at_the_usual_priority() -> None:
    """The thread only waits, and may have to take a query next."""
    model, own = Elsewhere(), niceness(threading.get_native_id())
    queue = EmbeddingQueue(lambda: model)
    queue.embed_documents([f"note {number}" for number in range(20)])
    queue.close()
    assert set(model.notes) == {own}

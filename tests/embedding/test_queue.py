"""Queries overtake indexing, and a model that fails heals by itself."""

import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from daemon_process import until
from patience import PATIENCE
from tests_support import WordHashEmbedder

from memd.embedding import UnavailableError
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.queue import MANY_PIECES, PIECE_TEXTS, EmbeddingQueue
from memd.errors import EmbedderError, ModelMismatchError

RETRY_S = (0.02, 0.1)


class Slow(WordHashEmbedder):
    """A server: takes a while for documents, and can be broken."""

    remote = True

    def __init__(self, pause_s: float = 0.0) -> None:
        self.pause_s = pause_s
        self.open = threading.Event()  # documents wait until it is set
        self.open.set()
        self.broken: Exception | None = None
        self.poison: str | None = None
        self.order: list[str] = []
        self.closed = False

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        self.open.wait(10 * PATIENCE)
        time.sleep(self.pause_s * len(texts))
        self.order += texts
        if self.broken:
            raise self.broken
        if self.poison in texts:
            raise ValueError("cannot take this text")
        return [super(Slow, self).embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        self.order.append(f"? {text}")
        if self.broken:
            raise self.broken
        return super().embed_query(text)

    def close(self) -> None:
        self.closed = True


class Hanging(Slow):
    """Documents wait for `open`, and a query called "hang" for `open_query`."""

    def __init__(self) -> None:
        super().__init__()
        self.open_query = threading.Event()
        self.open_query.set()
        self.busy = 0  # calls that have begun

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        self.busy += 1
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> bytes:
        self.busy += 1
        if text == "hang":
            self.open_query.wait(10 * PATIENCE)
        return super().embed_query(text)


@pytest.fixture
def made() -> Iterator[Callable[..., EmbeddingQueue]]:
    """Makes queues that are closed after the test."""
    queues: list[EmbeddingQueue] = []

    def make(load, threads: int = 2) -> EmbeddingQueue:
        queues.append(EmbeddingQueue(load, threads, retry_s=RETRY_S))
        return queues[-1]

    yield make
    for queue in queues:
        queue.close()


@pytest.fixture
def asked() -> Iterator[Callable[..., Future[list[bytes]]]]:
    """Asks a queue for the vectors of queries, in a thread of its own for each."""
    with ThreadPoolExecutor() as pool:
        yield lambda queue, texts, timeout_s=10: pool.submit(queue.embed_queries, texts, timeout_s)


def test_documents_come_back_in_order(made):
    texts = [f"note {number}" for number in range(101)]
    assert made(Slow).embed_documents(texts) == WordHashEmbedder().embed_documents(texts)
    assert made(Slow).embed_documents([]) == []


def test_the_texts_of_a_query_come_back_in_order(made):
    texts = ["brest cancer", "breast cancer"]
    queue = made(Slow)
    queue.ready()
    assert queue.embed_queries(texts, 5) == [WordHashEmbedder().embed_query(text) for text in texts]
    assert queue.embed_queries([], 5) == []


def test_a_query_does_not_wait_for_documents(made):
    embedder = Slow()
    embedder.open.clear()
    queue = made(lambda: embedder)
    queue.ready()
    indexing = threading.Thread(target=queue.embed_documents, args=([f"note {n}" for n in range(50)],))
    indexing.start()
    assert queue.embed_queries(["tabs"], 5)[0] == WordHashEmbedder().embed_query("tabs")
    assert embedder.order == ["? tabs"]
    embedder.open.set()
    indexing.join()


def test_queries_overtake_waiting_documents(made, asked):
    embedder = Hanging()
    embedder.open.clear()
    embedder.open_query.clear()
    queue = made(lambda: embedder, threads=1)
    queue.ready()
    indexing = threading.Thread(target=queue.embed_documents, args=([f"note {n}" for n in range(8)],))
    indexing.start()
    until(lambda: embedder.busy == 1)
    hanging = asked(queue, ["hang"])
    until(lambda: embedder.busy == 2)
    overtaking = asked(queue, ["next"])
    until(lambda: queue._queries)
    embedder.open.set()
    overtaking.result()
    assert embedder.order[:3] == ["note 0", "note 1", "? next"]
    embedder.open_query.set()
    hanging.result()
    indexing.join()


def test_a_query_on_the_real_model_overtakes_indexing(made):
    """While 256-piece chunks are embedded on every thread, a query takes a fraction of their queue."""
    queue = made(OnnxEmbedder)
    queue.ready()
    chunks = [f"{number} " + "word " * 250 for number in range(24)]
    indexing = threading.Thread(target=queue.embed_documents, args=(chunks,))
    indexing.start()
    time.sleep(0.1)
    queue.embed_queries(["breast cancer gene"], 10)[0]
    assert indexing.is_alive()
    indexing.join()


def test_while_the_model_loads_a_query_hears_it_at_once(made):
    go = threading.Event()

    def load():
        go.wait(10 * PATIENCE)
        return Slow()

    queue = made(load)
    assert (queue.state, queue.reason, queue.error) == ("loading", "model-loading", None)
    for ask in (lambda: queue.embed_queries(["tabs"], 5), queue.embedder, lambda: queue.ready(0.01)):
        with pytest.raises(UnavailableError) as caught:
            ask()
        assert caught.value.reason == "model-loading"
    assert queue.embedder_or_none() is None
    threading.Timer(0.05, go.set).start()
    assert len(queue.embed_documents(["a", "b", "c"])) == 3
    assert (queue.state, queue.reason, len(queue.embed_queries(["tabs"], 5)[0])) == ("ready", None, 256)


def test_a_load_that_fails_is_tried_again(made):
    faults: list[Exception] = [OSError("no such file"), UnavailableError("numpy-missing", "no numpy")]
    seen = []
    has_queue = threading.Event()

    def load():
        has_queue.wait(10 * PATIENCE)
        seen.append((queue.state, queue.reason))
        if faults:
            raise faults.pop(0)
        return Slow()

    queue = made(load)
    has_queue.set()
    until(lambda: queue.state == "ready")
    assert seen == [("loading", "model-loading"), ("failed", "model-failed"), ("failed", "numpy-missing")]
    assert queue.error is None
    assert len(queue.embed_queries(["tabs"], 5)[0]) == 256


def test_a_provider_that_fails_heals(made):
    embedders: list[Slow] = []
    down = threading.Event()

    def load():
        if down.is_set():
            raise ConnectionError("still down")
        embedders.append(Slow())
        return embedders[-1]

    queue = made(load)
    queue.ready()
    down.set()
    embedders[0].broken = ConnectionError("gone")
    with pytest.raises(EmbedderError, match="gone"):
        queue.embed_documents(["a", "b", "c", "d", "e"])
    until(lambda: queue.state == "failed")
    with pytest.raises(UnavailableError) as caught:
        queue.embed_queries(["tabs"], 5)
    assert caught.value.reason == "model-failed"
    with pytest.raises(UnavailableError):
        queue.embed_documents(["a"])
    down.clear()
    until(lambda: queue.state == "ready")
    assert len(queue.embed_documents(["a"])) == 1
    assert (len(embedders), embedders[0].closed) == (2, True)


def test_a_text_that_fails_does_not_take_the_model_down(made):
    """If the model still answers after a failure, that one call failed and nothing else."""
    embedder = Slow()
    embedder.poison = "poison"
    queue = made(lambda: embedder)
    with pytest.raises(UnavailableError, match="cannot take this text"):
        queue.embed_documents(["a", "poison"])
    until(lambda: "? memd" in embedder.order)
    assert len(queue.embed_documents(["a", "b"])) == 2
    assert (queue.state, embedder.closed) == ("ready", False)


def test_a_slow_model_is_given_up_in_time(made, asked):
    embedder = Hanging()
    queue = made(lambda: embedder)
    queue.ready()
    embedder.open_query.clear()
    start = time.monotonic()
    futures = [asked(queue, ["hang"], 0.1 + 0.01 * number) for number in range(6)]
    for future in futures:
        with pytest.raises(UnavailableError) as caught:
            future.result()
        assert caught.value.reason == "model-slow"
    assert time.monotonic() - start < 5
    with pytest.raises(UnavailableError) as caught:
        queue.embed_queries(["tabs"], 60)  # who asks now hears it at once: nobody waits for what hangs
    assert caught.value.reason == "model-slow"
    embedder.open_query.set()
    until(lambda: not queue._hangs)
    assert len(queue.embed_queries(["tabs"], 5)[0]) == 256


def test_a_model_of_this_process_embeds_where_it_is_asked(made):
    """Also while every thread is busy with notes; what it cannot take is an error, and it goes on."""
    embedder = Slow()
    embedder.remote = False
    asking: list[str] = []
    embed = embedder.embed_query
    embedder.embed_query = lambda text: asking.append(threading.current_thread().name) or embed(text)
    embedder.open.clear()
    queue = made(lambda: embedder)
    queue.ready()
    indexing = threading.Thread(target=queue.embed_documents, args=([f"note {n}" for n in range(8)],))
    indexing.start()
    vectors = queue.embed_queries(["tabs", "spaces"], 5)
    assert vectors == [WordHashEmbedder().embed_query(text) for text in ("tabs", "spaces")]
    assert asking == [threading.current_thread().name] * 2
    embedder.open.set()
    indexing.join()
    embedder.broken = ValueError("no such text")
    with pytest.raises(UnavailableError, match="no such text"):
        queue.embed_queries(["tabs"], 5)
    embedder.broken = None
    until(lambda: queue.state == "ready")


def test_a_query_that_was_given_up_is_not_embedded(made, asked):
    embedder = Slow()
    queue = made(lambda: embedder, threads=0)
    queue.ready()
    block = threading.Event()
    embedder.embed_query = lambda text: embedder.order.append(text) or block.wait(5 * PATIENCE) or b""
    first = asked(queue, ["first"])
    until(lambda: embedder.order == ["first"])
    third = asked(queue, ["third"])
    until(lambda: queue._queries)
    with pytest.raises(UnavailableError):
        queue.embed_queries(["second"], 0.01)
    block.set()
    first.result()
    third.result()
    assert embedder.order == ["first", "third"]


def test_vectors_of_another_model_are_refused(made):
    queue = made(Slow)
    assert len(queue.embed_documents(["a"], model_id="word-hash")) == 1
    with pytest.raises(ModelMismatchError, match="'older'"):
        queue.embed_documents(["a"], model_id="older")
    assert queue.state == "ready"


def test_close_ends_what_waits(made):
    embedder = Slow(pause_s=0.01)
    queue = made(lambda: embedder)
    queue.ready()
    heard = []

    def index():
        try:
            queue.embed_documents(["text"] * 500)
        except EmbedderError as error:
            heard.append(str(error))

    indexing = threading.Thread(target=index)
    indexing.start()
    until(lambda: bool(embedder.order))
    queue.close()
    indexing.join()
    assert "stopping" in heard[0]
    assert embedder.closed
    assert not [thread for thread in (*queue._threads, queue._thread) if thread.is_alive()]
    for ask in (
        lambda: queue.embed_queries(["tabs"], 1),
        lambda: queue.embed_documents(["a"]),
        queue.embedder,
    ):
        with pytest.raises(UnavailableError, match="stopping"):
            ask()


def test_close_while_loading_frees_the_model():
    go = threading.Event()
    embedder = Slow()
    queue = EmbeddingQueue(lambda: go.wait(10 * PATIENCE) and embedder, retry_s=RETRY_S)
    threading.Timer(0.05, go.set).start()
    queue.close()
    assert embedder.closed
    assert queue.embedder_or_none() is None


class Unmeasured(Slow):
    """Does not state its cosines."""

    cosines = None


def test_a_model_is_measured_once_for_all_workspaces(made):
    """They all ask when they are opened, before the first has the answer."""
    embedder = Unmeasured(pause_s=0.005)
    queue = made(lambda: embedder)
    queue.ready()
    found = [future.result(10 * PATIENCE) for future in [queue.measure() for _ in range(5)]]
    assert len(set(found)) == 1
    assert embedder.cosines == found[0]
    assert len(embedder.order) == len(set(embedder.order))


class Wasteful(WordHashEmbedder):
    """Frees much memory below something that stays, as onnxruntime does: the allocator alone keeps it."""

    def __init__(self) -> None:
        self.wasted = False
        self.stays = b""

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        if not self.wasted:
            self.wasted = True
            waste = [bytes(1000) for _ in range(100_000)]
            self.stays = bytes(1000)
            del waste
        return super().embed_documents(texts)


def resident_mb() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS"))


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="what another allocator keeps is its own affair"
)
def test_memory_is_returned_after_many_texts(made):
    """What the model freed while it indexed does not stay with memd until its end."""
    queue = made(Wasteful, 1)
    queue.embed_documents(["heron"])
    before = resident_mb()
    queue.embed_documents(["heron"] * PIECE_TEXTS * MANY_PIECES)
    until(lambda: resident_mb() < before - 50)

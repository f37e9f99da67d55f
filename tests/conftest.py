"""Fixtures of all tests."""

import asyncio
import gc
import inspect
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from model_server import ModelServer
from tests_support import LatinEmbedder, Notes, many

from tools import generate

# How long an example takes says something of the machine's load and nothing of memd. Examples make their own
# folders, and some are large on purpose.
_NO_FAULTS = ("too_slow", "function_scoped_fixture", "data_too_large", "large_base_example")
settings.register_profile(
    "memd",
    deadline=None,
    suppress_health_check=[HealthCheck[name] for name in _NO_FAULTS],
    max_examples=many(100),
)
settings.load_profile("memd")

# Collection makes millions of objects and drops few of them: the collector would look through them again and
# again, which takes a third of the time, in each process of a check.
gc.disable()

# Where files are in memory; in a container it may be too small for the tests.
MEMORY = Path("/dev/shm")
IN_MEMORY = {"api", "eval", "faults", "imports", "index", "search", "team", "workspace"}  # folders of tests
MEMORY_BYTES = 2 << 30
# Files of tests that take longest, the longest first, and folders of tests that wait for daemons and timers.
LONGEST = (
    *("test_eval_command", "test_slow_disks", "test_hooks", "test_surgery", "test_shells", "test_units"),
    *("test_migration", "test_hostile_notes", "test_import_command", "test_nvim_plugin", "test_find"),
    *("test_codes", "test_odd_files", "test_archive", "test_exports", "test_publishing", "test_full"),
    *("test_life", "test_channels", "test_model_changes", "test_states_of_the_disk", "test_models_command"),
)
WAITING = {"e2e", "faults", "live", "memctl"}


def pytest_configure(config: pytest.Config) -> None:
    """Say what is to be done where memctl is not whole; have the programs that tests start hear Ctrl-C.

    A shell starts what it runs in the background with SIGINT ignored, and a program that is started so
    keeps it.
    """
    if not (generate.ROOT / "memctl" / "methods.py").is_file():
        raise pytest.UsageError(f"files are missing that are in no commit: run {generate.COMMAND}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files that wait beside files that compute, from the first to the last, the longest ones first.

    One kind after the other would have the processes wait together, and then want the processors together.
    """
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [path for path in files if not WAITING.isdisjoint(path.parts)]
    computing = [path for path in files if WAITING.isdisjoint(path.parts)]
    place = {
        path: number / len(kind)
        for kind in (waiting, computing)
        for number, path in enumerate(sorted(kind, key=_rank))
    }
    items.sort(key=lambda item: place[item.path])


def _rank(path: Path) -> int:
    return LONGEST.index(path.stem) if path.stem in LONGEST else len(LONGEST)


def pytest_collection_finish() -> None:
    """Have the collector work again, and never look through what was collected, which stays to the end."""
    gc.enable()
    gc.freeze()


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(pyfuncitem.obj(**given))
    return True


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder of the test's own: on the disk, or in memory, where no commit of an index waits for the disk.

    What a kill leaves is the same in both. Tests of daemons and watches are about real file systems.
    """
    if IN_MEMORY.isdisjoint(request.path.parts) or not _has_memory():
        yield tmp_path
        return
    with TemporaryDirectory(prefix="memd-test-", dir=MEMORY) as folder:
        yield Path(folder)


def _has_memory() -> bool:
    return MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with an empty memory/."""
    (tmp_path / "work" / "memory").mkdir(parents=True)
    return tmp_path / "work"


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """An empty folder of notes with an empty index; whatever a test does, its index is sound at the end."""
    notes = Notes(tmp_path)
    yield notes
    assert notes.closed() == []


@pytest.fixture
def latin(tmp_path: Path) -> Iterator[Notes]:
    """Empty notes whose model reads Latin letters alone."""
    notes = Notes(tmp_path, embedder=LatinEmbedder())
    yield notes
    notes.index.close()


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[dict[str, str]], Notes]]:
    """Return a function: notes that are indexed once for the tests of a file that only ask."""
    known: dict[frozenset[tuple[str, str]], Notes] = {}

    def indexed_once(texts: dict[str, str]) -> Notes:
        key = frozenset(texts.items())
        if key not in known:
            known[key] = Notes(tmp_path_factory.mktemp("indexed"))
            known[key].save(texts)
        return known[key]

    yield indexed_once
    assert [finding for one in known.values() for finding in one.closed()] == []


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A server with a model, which can be told to hang and to fail, and lists what it embedded."""
    server = ModelServer()
    yield server
    server.stop()

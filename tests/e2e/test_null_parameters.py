"""null is as good as nothing, in every method and for every parameter that may be left out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_process import Daemon
from protocol_page import own_fields

from memctl.client import RpcError
from memd.api import params
from memd.api.methods import METHODS

# What must be given: enough for an answer, or for an error that is the same each time.
NEEDED: dict[str, dict[str, Any]] = {
    "search": {"query": "weir"},
    "search_memory": {"query": "weir"},
    "recall": {"query": "weir"},
    "why": {"query": "weir", "path": "1.md"},
    "similar": {"path": "1.md"},
    "get": {"path": "1.md"},
    "extract_memory": {"topic": "water", "title": "Weirs", "content": "They hold it back."},
    "forget": {"path": "memory/nothing/there.md"},
    "workspace.remove": {"path": "/nowhere"},
    "team.publish": {"path": "/nowhere"},
    "team.unpublish": {"path": "/nowhere"},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Path]]:
    """A daemon with a small workspace, the same for every method."""
    daemon = Daemon(tmp_path_factory.mktemp("null"))
    root = daemon.home / "notes"
    root.mkdir()
    (root / "1.md").write_text("The weir was mended in May.\n")
    daemon.start()
    daemon.add(root)
    yield daemon, root
    daemon.close()


def outcome(daemon: Daemon, method: str, params: dict[str, Any]) -> object:
    """Return the keys of an answer, or the error."""
    try:
        with daemon.client() as client:
            return sorted(client.call(method, params, timeout_s=None))
    except RpcError as error:
        return str(error)


@pytest.mark.parametrize("method", METHODS)
def test_null_is_as_good_as_nothing(place, method):
    daemon, root = place
    needed = NEEDED.get(method, {})
    if method == "workspace.add":
        needed = {"path": str(root)}
    optional = [*params.Params.__struct_fields__]
    optional += [field.name for field in own_fields(METHODS[method].params) if not field.required]
    absent = [name for name in optional if name not in needed]
    expected = outcome(daemon, method, needed)
    assert "MEMD_INVALID" not in str(expected)
    assert [name for name in absent if outcome(daemon, method, {**needed, name: None}) != expected] == []
    assert outcome(daemon, method, {**needed, **dict.fromkeys(absent)}) == expected

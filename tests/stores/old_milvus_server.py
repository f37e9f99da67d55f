"""The vector half of the store on a real server: Milvus 2.3.5 of the package `milvus`. For `.ci/long milvus`.

The server listens on all interfaces, so run this in a network namespace of its own:

    unshare -n sh -c 'ip link set lo up && python -m pytest tests/stores/old_milvus_server.py'

It has no BM25; what else the store does runs here on a server with bounded reads.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from milvus import default_server

from memd.config import TeamConfig
from memd.errors import StoreRefusedError
from memd.stores.milvus import MilvusStore
from memd.stores.store import Filter, Wanted
from stores.published_notes import chunk, random_sources, source, vector_of, workspace
from stores.reference_store import Body, ReferenceStore

CALL_S = 60.0
SEEN_S = 30.0  # generous: a bounded read may lag behind by some seconds
ASKED = Wanted(("word1", "searching"), (), vector_of("word1 searching"), None, (), 150)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that is alone with these tests."""
    interfaces = {path.name for path in Path("/sys/class/net").iterdir()}
    links = Path("/proc/net/route").read_text().splitlines()[1:]
    assert not links, f"this network has routes ({sorted(interfaces)}): run it in a namespace of its own"
    default_server.set_base_dir(str(tmp_path_factory.mktemp("milvus")))
    with default_server:
        yield f"http://127.0.0.1:{default_server.listen_port}"


@pytest.fixture(scope="module")
def both(uri, tmp_path_factory):
    """Two stores with the same notes of two workspaces."""
    ours = MilvusStore(TeamConfig(uri=uri), has_words=False)
    theirs = ReferenceStore(Body(tmp_path_factory.mktemp("reference") / "x.db"), "token", ["team"])
    for each in (ours, theirs):
        for number, name in enumerate(("one", "two")):
            each.publish(workspace(name), CALL_S)
            each.replace(tuple(random_sources(number, 60, workspace=f"id of {name}")), CALL_S)
    return ours, theirs


def test_a_server_without_bm25_is_refused(uri):
    """Nothing is published to a server that could not answer."""
    with pytest.raises(StoreRefusedError, match=r"Milvus 2\.3\.5 has no BM25: memd needs 2\.5"):
        MilvusStore(TeamConfig(uri=uri, collection="other")).publish(workspace(), CALL_S)


def test_the_list_by_vector_is_exact_under_any_filter(both):
    """The nearest vectors are those of the reference store, with each kind of filter."""
    ours, theirs = both
    for one in (None, ("tag", "project"), ("field", "status=draft"), ("field", "due>=2026-05-02"),
                ("since", "2025-06-01"), ("path", "*alpha*"), ("path", "daily")):  # fmt: skip
        filters = () if one is None else (Filter(one[0], (one[1],)),)
        for workspaces in (None, ("id of two",)):
            asked = msgspec.structs.replace(ASKED, filters=filters, workspaces=workspaces)
            found, expected = ours.candidates(asked, CALL_S), theirs.candidates(asked, CALL_S)
            assert found.by_vector == expected.by_vector, (one, workspaces)


def test_sources_counts_and_pages_are_those_that_were_written(both):
    """Whole sources, statistics and listings, page by page in the order of paths."""
    ours, theirs = both
    listed = theirs.sources("id of one", "", 1000, CALL_S)
    assert ours.sources("id of one", listed[6].key.path, 7, CALL_S) == listed[7:14]
    keys = tuple(one.key for one in listed)
    assert ours.evidence(keys, CALL_S) == theirs.evidence(keys, CALL_S)
    assert ours.statistics(ASKED, CALL_S) == theirs.statistics(ASKED, CALL_S)


def test_a_save_is_found_and_a_removed_note_is_gone(both):
    """A bounded read sees a new revision, and no old one, within some seconds."""
    ours, _ = both
    for number in range(5):
        note = source(f"fresh{number}.md", chunk(0, f"unique{number}"), revision=1)
        asked = Wanted((), (), vector_of(f"unique{number}"), None, (), 3)

        def is_found(asked=asked, note=note) -> bool:
            return any(one.path == note.key.path for one in ours.candidates(asked, CALL_S).by_vector)

        ours.replace((note,), CALL_S)
        _comes(is_found)
        ours.remove(((note.key, 1),), CALL_S)
        _comes(lambda is_found=is_found: not is_found())


def test_revisions_replace_each_other_and_an_unpublished_workspace_is_gone(both):
    """After replacing, removing and unpublishing, the store has what the reference store has."""
    ours, theirs = both
    first = theirs.sources("id of one", "", 1, CALL_S)[0].key
    for each in both:
        each.replace(tuple(random_sources(5, 30, revision=9)), CALL_S)
        each.remove(((first, 99),), CALL_S)
        each.unpublish("id of two", CALL_S)
    assert ours.sources("id of one", "", 1000, CALL_S) == theirs.sources("id of one", "", 1000, CALL_S)
    _comes(lambda: ours.candidates(ASKED, CALL_S).by_vector == theirs.candidates(ASKED, CALL_S).by_vector)


def _comes(condition) -> None:
    stop = time.monotonic() + SEEN_S
    while not condition():
        assert time.monotonic() < stop
        time.sleep(0.05)

"""A full disk costs an error and no more: what is indexed answers, and all goes on when there is space."""

import pytest
from daemon_process import until
from tests_support import LONG

from faults import full
from memctl.client import RpcError

pytestmark = pytest.mark.skipif(not full.is_possible(), reason="needs a mount namespace: unshare -m")


def test_a_save_on_a_full_disk_is_indexed_when_there_is_space(tmp_path):
    """Requests fail with MEMD_NOSPACE, old notes are found, also after a start; the new one when it fits."""
    report = full.loop(tmp_path, frees=[0, 32 * 1024, 160 * 1024][: 3 if LONG else 2], restart_every=2)
    assert report.flaws == []
    assert report.refused


def test_words_are_found_where_vectors_do_not_fit(tmp_path):
    """A disk too small for the matrix costs the meaning, and gives it back when it grows."""
    with full.tiny(tmp_path, full.WITHOUT_MATRIX_BYTES) as one:
        one.start()
        one.save("1.0")
        one.daemon.call("workspace.add", path=str(one.root))
        until(lambda: one.found("1.0") == ["1.0.md"])
        until(lambda: any("no space" in error for error in one.facts["errors"]))
        one.grow(full.SIZE_BYTES)
        until(one.is_settled, full.PATIENCE_S)
        assert one.facts["vectors"] > 0


def test_a_rebuild_on_a_full_disk_leaves_the_old_index(tmp_path):
    """The error says so; the old one answers then, and after a start; with space it is made anew."""
    with full.tiny(tmp_path, 2 * full.SIZE_BYTES) as one:
        one.begin()
        one.fill(256 * 1024)
        with pytest.raises(RpcError) as caught:
            one.daemon.call("index", workspace=str(one.root), rebuild=True)
        assert caught.value.code == "MEMD_NOSPACE"
        assert one.found("0.3") == ["0.3.md"]
        assert one.facts["vectors"] >= 6
        one.restart()
        assert one.found("0.3") == ["0.3.md"]
        one.make_space()
        one.daemon.call("index", workspace=str(one.root), rebuild=True)
        assert one.found("0.3") == ["0.3.md"]
        assert one.facts["vectors"] >= 6
        assert one.check() == []


def test_an_entry_on_a_full_state_disk_is_written_once(tmp_path):
    """Its own disk has space: a success that says what lags, and the entry is found when there is space."""
    with full.tiny(tmp_path) as one:
        one.begin()
        one.fill(0)
        fact = {"topic": "birds", "title": "Storks", "content": "They come in April. " * 2000}
        written = one.daemon.call("extract_memory", workspace=str(one.root), **fact)
        assert (written["indexed"], written["similar"]) == (False, [])
        assert (one.root / written["path"]).exists()
        one.make_space()
        until(lambda: not one.index(), full.PATIENCE_S)
        assert set(one.daemon.found("storks", workspace=str(one.root), mode="keyword")) == {written["path"]}


def test_a_disk_without_inodes_is_a_full_disk(tmp_path):
    """What cannot be made says MEMD_NOSPACE: a registry, an index, its log; with inodes all goes on."""
    other = tmp_path / "other"
    other.mkdir()
    with full.tiny(tmp_path, 2 * full.SIZE_BYTES) as one:
        one.begin()
        one.take_inodes()

        def code(method: str, **params: object) -> str:
            with pytest.raises(RpcError) as caught:
                one.daemon.call(method, **params)
            return caught.value.code

        assert code("index", workspace=str(one.root), rebuild=True) == "MEMD_NOSPACE"
        assert code("workspace.add", path=str(other)) == "MEMD_NOSPACE"
        assert one.found("0.3") == ["0.3.md"]
        written = one.daemon.call(
            "extract_memory", workspace=str(one.root), topic="t", title="Storks", content="In April."
        )
        assert (one.root / written["path"]).exists()
        one.give_inodes()
        one.daemon.stop()
        one.take_inodes()
        one.start()
        assert code("search", workspace=str(one.root), query="x") == "MEMD_NOSPACE"
        one.give_inodes()
        assert one.found("0.3") == ["0.3.md"]
        assert one.daemon.found("storks", workspace=str(one.root), mode="keyword") == [written["path"]]


def test_an_entry_is_forgotten_on_a_full_state_disk(tmp_path):
    """The file is deleted and the answer says what lags; the journal has it once there is space."""
    with full.tiny(tmp_path, 2 * full.SIZE_BYTES) as one:
        one.begin()
        fact = {"topic": "birds", "title": "Storks", "content": "They come in April. " * 2000}
        written = one.daemon.call("extract_memory", workspace=str(one.root), **fact)
        until(one.is_settled, full.PATIENCE_S)
        one.fill(0)
        answer = one.daemon.call("forget", workspace=str(one.root), path=written["path"])
        assert (answer["forgotten"], answer["indexed"]) == (True, False)
        assert not (one.root / written["path"]).exists()
        assert one.daemon.found("storks", workspace=str(one.root), mode="keyword") == []
        one.make_space()

        def journal():
            records = one.daemon.call("journal", workspace=str(one.root))["records"]
            return [(record["action"], record["id"]) for record in records]

        until(lambda: ("forget", written["id"]) in journal(), full.PATIENCE_S)
        until(one.is_settled, full.PATIENCE_S)
        one.daemon.call("index", workspace=str(one.root), purge=True)
        assert one.check() == []

"""A full disk costs an error and no more: what is indexed answers, and all goes on when there is space."""

import pytest
from daemon_process import until

from faults import full

pytestmark = pytest.mark.skipif(not full.is_possible(), reason="needs a mount namespace: unshare -m")


def test_a_save_on_a_full_disk_is_indexed_when_there_is_space(tmp_path):
    """Requests fail with MEMD_NOSPACE, old notes are found, also after a start; the new one when it fits."""
    report = full.loop(tmp_path, frees=[0, 32 * 1024, 160 * 1024], restart_every=2)
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

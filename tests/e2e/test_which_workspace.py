"""Which workspace is meant by who names none?"""

import pytest

from memctl.client import RpcError


def test_a_copy_beside_the_indexes_is_not_meant(workspace):
    """Editors go on while notes are being measured on a copy of them."""
    daemon, root = workspace
    copy = daemon.state / "copy" / "notes"
    copy.mkdir(parents=True)
    (copy / "a.md").write_text("heron\n")
    daemon.call("workspace.add", path=str(copy))
    assert daemon.call("search", query="heron")["workspace"] == str(root)
    assert daemon.call("search", query="heron", workspace=str(copy))["workspace"] == str(copy)


def test_of_two_folders_none_is_meant(workspace, tmp_path):
    """It says which there are."""
    daemon, root = workspace
    other = tmp_path / "other"
    other.mkdir()
    daemon.call("workspace.add", path=str(other))
    with pytest.raises(RpcError, match="names no workspace") as told:
        daemon.call("search", query="heron")
    assert str(root) in str(told.value)

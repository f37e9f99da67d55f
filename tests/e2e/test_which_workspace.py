"""The workspace of a request that names none."""

import pytest

from memctl.client import RpcError


def test_of_two_folders_none_is_meant(workspace, tmp_path):
    daemon, root = workspace
    other = tmp_path / "other"
    other.mkdir()
    daemon.call("workspace.add", path=str(other))
    with pytest.raises(RpcError, match="names no workspace") as told:
        daemon.call("search", query="heron")
    assert str(root) in str(told.value)

"""`memctl status --debug` tells what a bug report needs, and no word of a note or a query."""

import json

import pytest
from daemon_process import until

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "notes"
    root.mkdir()
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    return root


def test_it_tells_versions_lag_requests_and_file_events(daemon, root):
    workspace = daemon.add(root)
    (root / "otter.md").write_text("An otter.\n")
    until(lambda: daemon.found("otter", workspace=workspace, mode="keyword"))
    told = json.loads(daemon.memctl("status", "--debug", "--lag", "0.1", "-w", workspace).stdout)
    assert told["telemetry_disabled"] is True
    assert {"apsw", "msgpack", "numpy", "onnxruntime"} <= told["packages"].keys()
    assert 0 <= told["loop_lag_ms"]["p50"] <= told["loop_lag_ms"]["p99"] <= told["loop_lag_ms"]["max"]
    assert {"search", "workspace.add"} <= {one["method"] for one in told["requests"]}
    assert any(path.endswith("otter.md") for batch in told["watched"] for path in batch["paths"])
    assert told["descriptors"] > 3


def test_it_can_be_read(daemon, root):
    workspace = daemon.add(root)
    for _ in range(3):
        daemon.call("search", query="weir heron", workspace=workspace)
    lines = daemon.memctl("status", "--debug", "--lag", "0").stdout.splitlines()
    told = json.loads("\n".join(lines))
    assert len(told["requests"]) >= 4
    for request in told["requests"]:
        assert any(line.strip().rstrip(",") == json.dumps(request) for line in lines)
    starts = [line.strip().partition(":")[0].strip('"') for line in lines]
    assert {"packages", "loop_lag_ms", "descriptors"} <= set(starts)
    assert max(map(len, lines)) < 2_000


def test_it_names_no_file_unless_one_workspace_is_asked_about(daemon, root):
    """Nor a word of a query or a note, ever."""
    workspace = daemon.add(root)
    daemon.call("search", query="weir heron", workspace=workspace)
    (root / "secretname.md").write_text("secretword\n")
    until(lambda: daemon.found("secretword", workspace=workspace, mode="keyword"))
    everything = daemon.memctl("status", "--debug", "--lag", "0").stdout
    assert "secretname" not in everything
    assert '"watched": [' in everything
    for word in ("secretword", "weir"):
        assert (
            word not in everything + daemon.memctl("status", "--debug", "--lag", "0", "-w", workspace).stdout
        )

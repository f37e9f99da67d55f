"""What a daemon says of itself, in its log and to who greets it, is true."""

import json
import platform
from importlib.metadata import version

import pytest

from memctl.client import RpcError
from memd import __version__
from memd.api.status import FEATURES

ENTRY = {"topic": "birds", "title": "Storks", "content": "They come in April."}

# Feature → a call that only a daemon with that feature answers.
PROOF = {
    "search": ("search", {"query": "weir"}),
    "recall": ("recall", {"query": "weir"}),
    "extract_memory": ("extract_memory", ENTRY),
    "get": ("get", {"path": "1.md"}),
    "index": ("index", {}),
    "progress": ("index", {"progress": True}),
    "workspaces": ("workspace.list", {}),
    "health": ("health", {}),
    "sync": ("search", {"query": "weir", "sync": True}),
    "subscribe": ("subscribe", {}),
    "check": ("check", {}),
    "purge": ("index", {"purge": True}),
    "explain": ("search", {"query": "weir", "explain": True}),
    "why": ("why", {"query": "weir", "path": "2.md"}),
    "similar": ("similar", {"path": "1.md"}),
    "debug": ("debug", {"lag_s": 0.0}),
    "pause": ("pause", {"duration_s": 0.01}),
    "history": ("history", {"path": "1.md"}),
    "update": ("extract_memory", {"content": "They come in March."}),
    "forget": ("forget", {}),
    "team": ("search", {"query": "weir", "scope": "workspace"}),
}


def test_each_feature_that_is_named_is_there(workspace):
    daemon, _ = workspace
    assert set(daemon.call("memd.hello")["features"]) == set(FEATURES) == set(PROOF)
    entry = daemon.call("extract_memory", **{**ENTRY, "title": "Cranes"})["path"]
    for feature, (method, params) in PROOF.items():
        asked = {"forget": {"path": entry}, "update": {**params, "update": entry}}.get(feature, params)
        assert daemon.call(method, **asked), feature


def test_a_greeting_names_the_generation_of_the_workspace_that_is_meant(workspace, tmp_path):
    """So that a client knows whether what it remembers is still so; of several workspaces none is meant."""
    daemon, root = workspace
    (root / "otter.md").write_text("It slides.\n")
    daemon.call("index")
    after = daemon.call("status")["workspaces"][0]["generation"]
    assert daemon.call("memd.hello")["index_generation"] == after
    (tmp_path / "second").mkdir()
    daemon.add(tmp_path / "second")
    assert daemon.call("memd.hello")["index_generation"] is None
    assert daemon.call("memd.hello", workspace=str(root))["index_generation"] == after


def test_the_first_line_of_the_log_names_the_versions(daemon):
    first = json.loads(daemon.log().splitlines()[0])
    assert first["event"] == "start"
    assert (first["memd"], first["python"]) == (__version__, platform.python_version())
    for package in ("numpy", "onnxruntime", "msgpack", "apsw"):
        assert first[package] == version(package)
    assert first["sqlite"][:2] == "3."
    assert first["telemetry_disabled"] is True


def test_what_a_daemon_logs_of_requests_is_asked_for(daemon):
    with pytest.raises(RpcError):
        daemon.call("get", path="1.md")
    assert '"request"' not in daemon.log()
    daemon.stop()
    daemon.start(arguments=["--verbose"])
    daemon.call("ping")
    daemon.stop()
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert {"connected", "request", "disconnected"} <= {line["event"] for line in lines}

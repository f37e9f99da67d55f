"""A note that another one supersedes: every answer says so, and it comes back when that one is gone."""

import json
from pathlib import Path

import pytest
from daemon_process import Daemon

pytestmark = pytest.mark.usefixtures("shared_daemon")

OLD = "# Deploys\n\nTo deploy staging run make stage. Deploys to staging are on Fridays.\n"
NEW = "---\nsupersedes: ops/deploy.md\n---\n# Pipeline\n\nA pushed tag deploys staging, on any day.\n"
OTHER = "# Garden\n\nThe hose lies behind the shed.\n"
QUERY = "how do we deploy staging"


@pytest.fixture
def ops(daemon: Daemon, tmp_path: Path) -> tuple[Daemon, Path]:
    """A workspace in which a person wrote how it is, and later how it is now."""
    root = tmp_path / "ops"
    for path, text in (("ops/deploy.md", OLD), ("ops/pipeline.md", NEW), ("garden.md", OTHER)):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    daemon.add(root)
    daemon.call("index", workspace=str(root))
    return daemon, root


def test_every_answer_says_what_holds_in_the_place_of_a_note(ops):
    daemon, root = ops
    by = ["ops/pipeline.md"]
    for mode in ("keyword", "hybrid", "vector"):
        hits = daemon.call("search", workspace=str(root), query=QUERY, mode=mode)["hits"]
        told = {hit["path"]: hit["superseded_by"] for hit in hits}
        assert list(told)[:2] == ["ops/pipeline.md", "ops/deploy.md"]
        assert (told["ops/pipeline.md"], told["ops/deploy.md"]) == ([], by)
    near = daemon.call("similar", workspace=str(root), path="ops/pipeline.md", min_score=0.0)
    assert near["superseded_by"] == []
    assert {hit["path"]: hit["superseded_by"] for hit in near["hits"]}["ops/deploy.md"] == by
    assert daemon.call("similar", workspace=str(root), path="ops/deploy.md")["superseded_by"] == by
    assert daemon.call("get", workspace=str(root), path="ops/deploy.md")["superseded_by"] == by
    assert daemon.call("get", workspace=str(root), path="ops/pipeline.md")["superseded_by"] == []
    told = daemon.call("why", workspace=str(root), path="ops/deploy.md", query=QUERY)
    assert (told["stage"], told["facts"]["rank"], told["superseded_by"]) == ("returned", 2, by)
    assert "superseded by ops/pipeline.md" in told["text"]
    assert told["facts"]["explanation"]["superseded_by"] == by


def test_recall_leaves_out_what_is_superseded_unless_it_is_asked_for(ops):
    daemon, root = ops
    recalled = daemon.call("recall", workspace=str(root), query=QUERY)
    assert "make stage" not in recalled["text"]
    assert "pushed tag" in recalled["text"]
    [left_out] = [one for one in recalled["omitted"] if one["path"] == "ops/deploy.md"]
    assert left_out["reason"] == "superseded by ops/pipeline.md"
    every = daemon.call("recall", workspace=str(root), query=QUERY, superseded=True)
    assert "make stage" in every["text"]
    assert "written by a person, superseded by ops/pipeline.md)" in every["text"]
    assert every["tokens"] <= every["budget_tokens"]
    said = daemon.memctl("recall", "-w", str(root), QUERY)
    assert "make stage" not in said.stdout
    assert "make stage" in daemon.memctl("recall", "-w", str(root), "--superseded", QUERY).stdout


def test_memctl_shows_it_to_a_person(ops, tmp_path):
    daemon, root = ops
    page = daemon.memctl("search", "-w", str(root), QUERY, cwd=root)
    assert "superseded by ops/pipeline.md\n" in page.stdout
    explained = daemon.memctl("search", "-w", str(root), "--explain", QUERY, cwd=root).stdout
    assert "newer    takes the place of ops/deploy.md, which it supersedes\n" in explained
    assert "older    ranked below what supersedes it: ops/pipeline.md\n" in explained
    read = daemon.memctl("get", "ops/deploy.md", cwd=root)
    assert (read.stdout, read.stderr) == (OLD, "memctl: superseded by ops/pipeline.md\n")
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.md").write_text("How one can deploy something else.\n")
    daemon.add(other)
    merged = json.loads(daemon.memctl("search", "--all", "--json", "--nearest", QUERY, cwd=tmp_path).stdout)
    paths = [hit["path"] for hit in merged["hits"]]
    assert paths.index("ops/pipeline.md") < paths.index("ops/deploy.md")

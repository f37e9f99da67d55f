"""What narrows a search, and what marks its hits: operators, days, last days and what replaces a note."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from daemon_process import NO_MODEL, Daemon, Workspace, folder_of

from memctl import exits

pytestmark = pytest.mark.usefixtures("shared_daemon")

REPOSITORY = str(Path(exits.__file__).parents[1])


@pytest.fixture
def asked(daemon: Daemon, tmp_path: Path):
    """Return a function that runs memctl in one of two diaries."""
    for name, days in (("one", ("2026-05-01", "2026-05-03")), ("two", ("2026-05-02",))):
        notes = {f"{day}.md": f"---\ntags: [alpha]\n---\nWhat happened on {day}.\n" for day in days}
        daemon.add(folder_of(tmp_path / name, notes))

    def run(*argv, cwd="one"):
        return daemon.memctl(*argv, cwd=tmp_path / cwd, env={"PYTHONPATH": REPOSITORY})

    return run


def test_filters_alone_list_the_newest(asked):
    for argv in (["tag:alpha"], ["--tag", "alpha"], ["--path", "."], ["--since", "2026-05-01"]):
        done = asked("search", "--files", *argv)
        wanted = "" if argv == ["--path", "."] else "2026-05-03.md\n2026-05-01.md\n"
        assert (done.stdout, done.stderr if wanted else "") == (wanted, ""), argv
    every = asked("search", "--all", "--jsonl", "tag:alpha").stdout.splitlines()
    assert [json.loads(line)["date"][-1] for line in every] == ["3", "2", "1"]
    told = asked("recall", "--tag", "alpha").stdout
    assert told.index("on 2026-05-03") < told.index("on 2026-05-01")
    explained = json.loads(asked("search", "--explain", "--json", "tag:alpha").stdout)
    assert [hit["score"] for hit in explained["hits"]] == [1.0, 1.0]
    assert asked("search", "--explain", "tag:alpha").returncode == exits.OK
    done = asked("search", "--tag", "none", "happened")
    assert (done.returncode, done.stderr) == (exits.NONE, "memctl: no note has tag:none\nmemctl: no hits\n")
    assert asked("search").returncode == exits.USAGE


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["search", "--limit", "5000", "x"], "memctl: --limit: expected int <= 1000, got 5000\n"),
        (
            ["search", "--limit", "500", "--explain", "x"],
            "memctl: --limit: at most 100 hits can be explained",
        ),
        (["search", "--since", "whenever", "x"], "memctl: --since: 'whenever' is not a day"),
        (["recall", "--budget", "9999999", "x"], "memctl: --budget: expected int <= 65536, got 9999999\n"),
        (["get", "a" * 5000], "memctl: PATH: expected str of length <= 4096\n"),
        (["why", "--until", "whenever", "a.md", "x"], "memctl: --until: 'whenever' is not a day"),
    ],
)
def test_a_refused_value_is_named_by_its_option(asked, argv, told):
    done = asked(*argv)
    assert (done.returncode, done.stdout) == (exits.USAGE, "")
    assert done.stderr.startswith(told), done.stderr


MANUAL = {
    "find.md": "# Finding\n\nfind . -name '*.tmp' -delete\n",
    "rm.md": "# Removing\n\nrm -rf build\n",
    "ports.md": "# Ports\n\nlsof -i shows who listens\n",
    "draft.md": "# Release\n\nThe draft of the release notes\n",
}


@pytest.fixture
def manual(daemon, tmp_path):
    """Notes about commands, and one that is none."""
    return daemon.workspace(tmp_path / "notes", MANUAL)


def test_an_answer_names_what_it_is_without(manual):
    answer = manual.call("search", query='release -tmp -"rm rf"')
    assert (answer["without"], answer["without_minus"]) == (["tmp", "rm rf"], None)
    assert [hit["path"] for hit in answer["hits"]] == ["draft.md"]
    for method in ("search", "recall", "search_memory"):
        answer = manual.call(method, query="-draft release", mode="keyword")
        assert not answer.get("hits", answer.get("sources"))
        assert answer["without"] == ["draft"]
        assert answer["without_minus"]["hits"] == 1
        assert answer["without_minus"]["best"] == {"path": "draft.md", "start_line": 1, "end_line": 3}
    neither = manual.call("search", query="wmqwhzei -zzzqqq", min_score=0.0)
    assert neither["hits"]  # the nearest by meaning is not what was asked for
    assert neither["without_minus"] == {"hits": 0, "best": None}
    told = manual.memctl("search", "--mode", "keyword", "--", "release", "-draft")
    assert "without: draft (no hits are left; without the minus the query finds 1 hit" in told.stderr


QUERY = "is the office open"


@pytest.fixture
def office(daemon, tmp_path):
    """A workspace without a model: a note that held until yesterday, and one that holds until today."""
    today = datetime.now().astimezone().date()
    last = (today - timedelta(days=1)).isoformat()
    notes = {
        "closed.md": f"---\nvalid_until: {last}\n---\n# Office\n\nThe office is closed, and not open.\n",
        "door.md": f"---\nvalid_until: {today}\n---\n# Door\n\nThe office door is open.\n",
        "broken.md": "---\nvalid_until: soon\n---\n# Tea\n\nTea is drunk without milk.\n",
    }
    return daemon.workspace(tmp_path / "notes", NO_MODEL | notes), last


def test_every_answer_says_until_when_a_note_held(office):
    workspace, last = office
    found = workspace.call("search", query=QUERY, explain=True)
    assert {hit["path"]: hit.get("expired") for hit in found["hits"]} == {"door.md": None, "closed.md": last}
    assert [hit["path"] for hit in found["hits"]] == ["door.md", "closed.md"]
    assert [hit["explanation"]["expired"] for hit in found["hits"]] == [None, last]
    near = workspace.call("similar", path="door.md", min_score=0.0)
    assert {hit["path"]: hit.get("expired") for hit in near["hits"]}["closed.md"] == last
    why = workspace.call("why", path="closed.md", query=QUERY)
    assert (why["stage"], why["expired"]) == ("returned", last)
    assert (
        f"it expired (was valid until {last}), and notes that match half as well come before it"
        in why["text"]
    )
    assert workspace.call("get", path="closed.md")["expired"] == last
    assert "expired" not in workspace.call("get", path="door.md")
    assert f"expired (was valid until {last})" in workspace.memctl("search", QUERY).stdout
    assert f"expired (was valid until {last})" in workspace.memctl("get", "closed.md").stderr
    explained = workspace.memctl("search", "--explain", QUERY).stdout
    assert f"was valid until {last}: ranked as if its score were half" in explained


def test_recall_leaves_it_out_unless_it_is_asked_for(office):
    workspace, last = office
    recalled = workspace.call("recall", query=QUERY)
    assert "closed" not in recalled["text"]
    [left_out] = [one for one in recalled["omitted"] if one["path"] == "closed.md"]
    assert (left_out["reason"], left_out["expired"]) == (f"expired (was valid until {last})", last)
    every = workspace.call("recall", query=QUERY, superseded=True)
    assert f"written by a person, expired (was valid until {last})" in every["text"]
    xml = workspace.call("recall", query=QUERY, superseded=True, format="xml")["text"]
    assert f'expired="{last}"' in xml


OLD = "# Deploys\n\nTo deploy staging run make stage. Deploys to staging are on Fridays.\n"
NEW = "---\nsupersedes: ops/deploy.md\n---\n# Pipeline\n\nA pushed tag deploys staging, on any day.\n"
OTHER = "# Garden\n\nThe hose lies behind the shed.\n"
SUPERSEDED_NOTES_QUERY = "how do we deploy staging"


@pytest.fixture
def ops(daemon: Daemon, tmp_path: Path) -> Workspace:
    """A workspace in which a person wrote how it is, and later how it is now."""
    notes = {"ops/deploy.md": OLD, "ops/pipeline.md": NEW, "garden.md": OTHER}
    return daemon.workspace(tmp_path / "ops", notes)


def test_every_answer_says_what_holds_in_the_place_of_a_note(ops):
    by = ["ops/pipeline.md"]
    for mode in ("keyword", "hybrid", "vector"):
        hits = ops.call("search", query=SUPERSEDED_NOTES_QUERY, mode=mode)["hits"]
        told = {hit["path"]: hit["superseded_by"] for hit in hits}
        assert list(told)[:2] == ["ops/pipeline.md", "ops/deploy.md"]
        assert (told["ops/pipeline.md"], told["ops/deploy.md"]) == ([], by)
    near = ops.call("similar", path="ops/pipeline.md", min_score=0.0)
    assert near["superseded_by"] == []
    assert {hit["path"]: hit["superseded_by"] for hit in near["hits"]}["ops/deploy.md"] == by
    assert ops.call("similar", path="ops/deploy.md")["superseded_by"] == by
    assert ops.call("get", path="ops/deploy.md")["superseded_by"] == by
    assert ops.call("get", path="ops/pipeline.md")["superseded_by"] == []
    told = ops.call("why", path="ops/deploy.md", query=SUPERSEDED_NOTES_QUERY)
    assert (told["stage"], told["facts"]["rank"], told["superseded_by"]) == ("returned", 2, by)
    assert "superseded by ops/pipeline.md" in told["text"]
    assert told["facts"]["explanation"]["superseded_by"] == by


def test_recall_leaves_out_what_is_superseded_unless_it_is_asked_for(ops):
    recalled = ops.call("recall", query=SUPERSEDED_NOTES_QUERY)
    assert "make stage" not in recalled["text"]
    assert "pushed tag" in recalled["text"]
    [left_out] = [one for one in recalled["omitted"] if one["path"] == "ops/deploy.md"]
    assert left_out["reason"] == "superseded by ops/pipeline.md"
    every = ops.call("recall", query=SUPERSEDED_NOTES_QUERY, superseded=True)
    assert "make stage" in every["text"]
    assert "written by a person, superseded by ops/pipeline.md)" in every["text"]
    said = ops.daemon.memctl("recall", "-w", str(ops.root), "--superseded", SUPERSEDED_NOTES_QUERY)
    assert "make stage" in said.stdout


def test_memctl_shows_it_to_a_person(ops, tmp_path):
    explained = ops.memctl("search", "--explain", SUPERSEDED_NOTES_QUERY).stdout
    assert "newer    takes the place of ops/deploy.md, which it supersedes\n" in explained
    read = ops.memctl("get", "ops/deploy.md")
    assert (read.stdout, read.stderr) == (OLD, "memctl: superseded by ops/pipeline.md\n")
    ops.daemon.add_notes(tmp_path / "other", {"x.md": "How one can deploy something else.\n"})
    asked = ("search", "--all", "--json", "--nearest", SUPERSEDED_NOTES_QUERY)
    paths = [hit["path"] for hit in json.loads(ops.daemon.memctl(*asked, cwd=tmp_path).stdout)["hits"]]
    assert paths.index("ops/pipeline.md") < paths.index("ops/deploy.md")

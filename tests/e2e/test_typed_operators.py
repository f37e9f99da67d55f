"""The RPC takes in a query what it takes as parameters."""

import pytest

pytestmark = pytest.mark.usefixtures("shared_daemon")


def paths(daemon, root, query, **params):
    return daemon.found(query, workspace=root, min_score=0.0, limit=50, **params)


def test_a_typed_minus_leaves_notes_out(sample):
    daemon, root = sample
    assert any(path.startswith("logs/") for path in paths(daemon, root, "the water"))
    left = paths(daemon, root, "the water -path:logs/")
    assert left
    assert not any(path.startswith("logs/") for path in left)
    recalled = daemon.call("recall", workspace=root, query="the water -path:logs/", budget_tokens=20_000)
    assert not [one for one in recalled["sources"] if one["path"].startswith("logs/")]
    shown = daemon.memctl("search", "-w", root, "--", "-path:logs/ the water")
    assert shown.stdout
    assert "logs/" not in shown.stdout


@pytest.mark.parametrize(
    ("typed", "params"),
    [
        ("path:recipes", {"path": "recipes"}),
        ("path:logs/2026-05*", {"path": "logs/2026-05*"}),
        ("since:2026-05-04", {"since": "2026-05-04"}),
        ("until:2026-05-01", {"until": "2026-05-01"}),
        ("after:2026-05-03", {"since": "2026-05-04"}),
        ("before:2026-05-02", {"until": "2026-05-01"}),
        ("path:logs after:2026-04-30", {"path": "logs", "since": "2026-05-01"}),
        ("tag:none-such", {"tag": "none-such"}),
    ],
)  # fmt: skip
def test_a_typed_filter_is_the_parameter(sample, typed, params):
    daemon, root = sample
    given = paths(daemon, root, "the water", **params)
    assert paths(daemon, root, f"the water {typed}") == given
    recalled = daemon.call("recall", workspace=root, query=f"the water {typed}", budget_tokens=20_000)
    assert {one["path"] for one in recalled["sources"]} <= set(given)


MANUAL = {
    "find.md": "# Finding\n\nfind . -name '*.tmp' -delete\n",
    "rm.md": "# Removing\n\nrm -rf build\n",
    "ports.md": "# Ports\n\nlsof -i shows who listens\n",
    "draft.md": "# Release\n\nThe draft of the release notes\n",
}


@pytest.fixture
def manual(daemon, tmp_path):
    """Notes about commands, and one that is none."""
    root = tmp_path / "notes"
    root.mkdir()
    for path, text in MANUAL.items():
        (root / path).write_text(text)
    return daemon, daemon.add(root)


@pytest.mark.parametrize(
    ("query", "first"),
    [("lsof -i", "ports.md"), ("rm -rf", "rm.md"), ("find -name", "find.md"), ("tmp -delete", "find.md")],
)
def test_a_flag_is_looked_for_and_excludes_nothing(manual, query, first):
    daemon, root = manual
    answer = daemon.call("search", workspace=root, query=query, min_score=0.0)
    assert (answer["hits"][0]["path"], answer["without"]) == (first, [])
    recalled = daemon.call("recall", workspace=root, query=query)
    assert (recalled["sources"][0]["path"], recalled["without"]) == (first, [])
    assert daemon.call("why", workspace=root, query=query, path=first)["stage"] == "returned"


def test_an_answer_names_what_it_is_without(manual):
    daemon, root = manual
    answer = daemon.call("search", workspace=root, query='release -tmp -"rm rf"')
    assert (answer["without"], answer["without_minus"]) == (["tmp", "rm rf"], None)
    assert [hit["path"] for hit in answer["hits"]] == ["draft.md"]
    for method in ("search", "recall", "search_memory"):
        answer = daemon.call(method, workspace=root, query="-draft release", mode="keyword")
        assert not answer.get("hits", answer.get("sources"))
        assert answer["without"] == ["draft"]
        assert answer["without_minus"]["hits"] == 1
        assert answer["without_minus"]["best"] == {"path": "draft.md", "start_line": 1, "end_line": 3}
    told = daemon.memctl("search", "--mode", "keyword", "--", "release", "-draft", cwd=root)
    assert "without: draft (no hits are left; without the minus the query finds 1 hit" in told.stderr


def test_what_is_no_good_match_is_nothing_beside_a_minus(manual):
    """The nearest by meaning is not what was asked for: the answer says what there is without the minus."""
    daemon, root = manual
    answer = daemon.call("search", workspace=root, query="zzzqqq -draft", min_score=0.0)
    assert answer["hits"]
    assert answer["confidence"] == "none"
    assert answer["without_minus"]["best"]["path"] == "draft.md"
    neither = daemon.call("search", workspace=root, query="wmqwhzei -zzzqqq", min_score=0.0)
    assert neither["without_minus"] == {"hits": 0, "best": None}
    told = daemon.memctl("search", "--", "zzzqqq", "-draft", cwd=root)
    assert (told.returncode, told.stdout) == (1, "")
    assert "without: draft (no hits are left; without the minus the query finds " in told.stderr

"""A daemon says why a note is not among the hits, and what made the score of those that are."""

import os

import pytest
from daemon_process import Daemon
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import many

from memctl.client import RpcError
from memd.api.why import STAGES

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "birds/heron.md": "# Herons\n\nThe grey heron stands in the shallows and waits.\n",
    "2026-05-01.md": "---\ntags: [daily]\n---\nSaw a heron on the way to work.\n",
    "cook/pesto.md": "# Pesto\n\nBasil, pine nuts, garlic and oil.\n",
    "empty.md": "\n",
    "drafts/x.md": "A heron that is ignored.\n",
    ".gitignore": "# not yet\ndrafts/\n",
    "table.csv": "heron,1\n",
    "utf16.md": "café heron".encode("utf-16"),
}


@pytest.fixture(scope="module")
def river(tmp_path_factory):
    """A daemon with these notes, for tests that only read."""
    home = tmp_path_factory.mktemp("river")
    daemon = Daemon(home)
    daemon.start()
    yield daemon.workspace(home / "notes", NOTES)
    daemon.close()


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_an_explained_search_is_the_same_answer(river, fusion):
    asked = {"query": "heron weir", "fusion": fusion, "min_score": 0.0}
    plain, told = river.call("search", **asked), river.call("search", **asked, explain=True)
    for hit, other in zip(plain["hits"], told["hits"], strict=True):
        assert other.pop("explanation")["keyword"]
        assert hit == other
    stages = dict(told["explanation"]["stages"])
    assert stages.pop("chunks") == sum(stages.values())
    assert stages["hits"] == len(told["hits"])
    assert plain["confidence"] == told["confidence"]
    assert told["explanation"]["decay_floor"] == 0.95  # as the configuration has it
    assert "explanation" not in plain


@settings(max_examples=many(60))
@given(
    path=st.text(min_size=1, max_size=30)
    | st.sampled_from([*NOTES, "../x", "/", ".", "a" * 5000, "a/" * 300]),
    query=st.text(max_size=30) | st.sampled_from(["path:..", "-", '"', "-x", "since:2026", "x" * 20_000]),
    line=st.none() | st.integers(1, 2**40),
)
def test_any_path_and_query_have_an_answer(river, path, query, line):
    try:
        assert river.call("why", path=path, query=query, line=line)["stage"] in STAGES
    except RpcError as error:
        is_told = len(path) > 4096 or "only words to exclude" in str(error)
        assert (error.code, is_told) == ("MEMD_INVALID", True)  # noqa: PT017 - either is right
    river.call("search", query=query, explain=True)
    try:
        river.call("similar", path=path, line=line)
    except RpcError as error:
        assert error.code in {"MEMD_NOT_FOUND", "MEMD_INVALID"}  # noqa: PT017


def test_memctl_takes_the_paths_that_it_prints(river):
    below, environment = f"{river.root}/birds", {"PYTHONPATH": os.getcwd()}  # noqa: PTH109

    def asked(*argv: str) -> tuple[int, str]:
        done = river.daemon.memctl("why", *argv, cwd=below, env=environment)
        return done.returncode, done.stdout

    for path in ("heron.md", f"{river.root}/birds/heron.md", "heron.md:3", "../birds/heron.md"):
        code, line = asked(path, "grey", "heron")
        assert (code, line.startswith("returned: heron.md:1-3 is hit ")) == (0, True), line
    assert asked("../cook/pesto.md", "--mode", "keyword", "heron")[0] == 1
    missing = asked("nothing.md", "heron")[1]
    assert missing.startswith("missing: nothing.md does not exist")
    assert f"\nThe path is {river.root}/birds/nothing.md\n" in missing
    assert asked("birds/heron.md", "heron")[0] == 5
    assert asked("heron.md:99", "heron")[1].startswith("empty: ")
    assert asked("../../log", "heron")[1].startswith("outside: ")
    assert asked("heron.md", "--path", "../cook/**", "--", "heron")[1].startswith("filtered: ")
    assert asked("heron.md")[0] == 2


def test_a_hit_of_an_answer_without_a_good_match_is_named_as_one(sample):
    nearest = sample.call("search", query="zzzqqq")["hits"][0]["path"]
    assert sample.call("why", query="zzzqqq", path=nearest)["confidence"] == "none"
    done = sample.memctl("why", nearest, "zzzqqq")
    assert done.returncode == 0
    assert "only with --nearest" in done.stderr
    good = sample.call("search", query="BRCA1 mutation")
    assert good["confidence"] != "none"
    assert sample.memctl("why", good["hits"][0]["path"], "BRCA1", "mutation").stderr == ""

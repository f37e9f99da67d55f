"""Without numpy, the vector ranking is the same, and the daemon runs, answers and reports it."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, until
from patience import ran
from postings_support import keys, made
from tests_support import Notes

from memctl.client import RpcError
from memd.index import postings_table

TIE = 1e-5  # scores that are nearer than float32 tells apart may stand in either order
ROOT = Path(__file__).parents[2]
TEXT = """
heron weir badger sett otter river lamp oil bread rye salt kiln clay glaze wheel loom yarn dye indigo
madder copper tin forge anvil hammer rope sail mast tide moon 記憶 検索 东京 北京 기억
"""
WORDS = [*TEXT.split(), *(f"word{number}" for number in range(60))]  # enough to fill every dimension
QUERIES = [
    "heron weir", "copper forge and the anvil of the hammer", '"tide moon" sail', "rye bread -salt",
    "記憶 検索", "北京的东京", "otter path:daily/**", "lamp tag:craft",
    "loom since:2026-02-01 until:2026-04-30", "北",
]  # fmt: skip
ASK = """
import json, pathlib, sys
if sys.argv[1] == "without":
    sys.modules["numpy"] = None
from model_server import ModelServer
from tests_support import Notes

notes = Notes(pathlib.Path(sys.argv[2]))
answers = {}
for text in json.loads(sys.argv[3]):
    for mode in ("keyword", "vector", "hybrid"):
        answer = notes.search(text, mode=mode, limit=40)
        answers[f"{mode} {text}"] = {
            "mode": answer.mode,
            "hits": [[hit.source.path, hit.candidate.score, hit.candidate.keyword_score]
                     for hit in answer.hits],
        }
print(json.dumps({"numpy": bool(sys.modules.get("numpy")), "answers": answers}))
"""


def many_notes(count: int) -> dict[str, str]:
    """Return notes of random words: dated ones, tagged ones, long ones, more than either arm's pool."""
    rng = random.Random(11)
    notes = {}
    for number in range(count):
        parts = [" ".join(rng.choices(WORDS, k=rng.randint(20, 60))) for _ in range(rng.choice([1, 1, 12]))]
        tag = "---\ntags: [craft]\n---\n" if number % 3 == 0 else ""
        path = f"daily/2026-{1 + number % 6:02}-{1 + number % 28:02}-{number}.md" if number % 2 else ""
        text = "\n\n".join(parts)
        notes[path or f"facts/{number}.md"] = f"{tag}# {rng.choice(WORDS)}\n\n{text}\n"
    return notes


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-c", script, *args], env={"PYTHONPATH": str(ROOT / "tests")}, cwd=ROOT)


def asked(how: str, folder: Path) -> dict:
    done = run(ASK, how, str(folder), json.dumps(QUERIES))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])  # before it stands what is logged


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[dict, dict]:
    """Return the answers of one index, built with numpy, with and without it."""
    folder = tmp_path_factory.mktemp("index")
    notes = Notes(folder)
    notes.save(many_notes(150))
    notes.index.close()
    found = asked("with", folder), asked("without", folder)
    assert [one["numpy"] for one in found] == [True, False]
    return found[0]["answers"], found[1]["answers"]


@pytest.mark.parametrize("query", QUERIES)
def test_the_vector_ranking_is_the_same(both, query):
    with_numpy, without = (answers[f"vector {query}"] for answers in both)
    assert with_numpy["mode"] == without["mode"] == "vector"
    assert with_numpy["hits"]
    assert [hit[1] for hit in without["hits"]] == pytest.approx(
        [hit[1] for hit in with_numpy["hits"]], abs=TIE
    )
    scores = {(path, round(score, 4)) for path, score, _ in without["hits"]}
    last = without["hits"][-1][1]
    for path, score, _ in with_numpy["hits"]:
        assert (path, round(score, 4)) in scores or score == pytest.approx(last, abs=TIE)


@pytest.mark.parametrize("query", QUERIES)
def test_words_find_what_has_them(both, query):
    """Ranked by FTS5, with scores in [0, 1); most of what is best with numpy is among it."""
    with_numpy, without = (answers[f"keyword {query}"]["hits"] for answers in both)
    assert bool(without) == bool(with_numpy)
    assert all(0 <= score < 1 for _, score, _ in without)
    paths = [path for path, _, _ in without]
    best = [path for path, _, _ in with_numpy[:5]]
    assert sum(path in paths for path in best) >= len(best) / 2


def test_both_arms_are_merged(both):
    answer = both[1]["hybrid heron weir"]
    assert answer["mode"] == "hybrid"
    assert answer["hits"][0][2] > 0
    assert answer["hits"] == sorted(answer["hits"], key=lambda hit: -hit[1])


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A daemon that cannot import numpy, as on a machine where it is broken or was never installed."""
    home = tmp_path_factory.mktemp("numpy") / "home"
    blocked = home.with_name("blocked")
    for folder in (home, blocked):
        folder.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys\nsys.modules['numpy'] = None\n")
    daemon = Daemon(home)
    daemon.environment["PYTHONPATH"] = str(blocked)
    yield daemon.start()
    daemon.close()


def test_a_daemon_without_numpy_answers_by_keyword_and_says_so(daemon, tmp_path):
    """Degraded, with its own code, in search, status and health; saved, changed and deleted notes follow."""
    root = folder_of(tmp_path / "notes", {"heron.md": "# Heron\n\nA grey bird that stands by the weir.\n"})
    workspace = daemon.add(root)
    for mode in ("hybrid", "vector", "keyword"):
        answer = daemon.call("search", query="grey heron", workspace=workspace, mode=mode)
        assert [hit["path"] for hit in answer["hits"]] == ["heron.md"]
        assert (answer["mode"], answer["degraded"]) == ("keyword", ["numpy-missing"])
    status = daemon.call("status", workspace=workspace)
    assert "numpy" in status["server"]["models"][0]["error"]
    assert status["workspaces"][0]["degraded"] == ["numpy-missing"]
    health = daemon.call("health", workspace=workspace)
    assert not health["ok"]
    assert "numpy-missing" in health["checks"][0]["detail"]
    written = daemon.call(
        "extract_memory", topic="birds", title="Storks", content="come in April", workspace=workspace
    )
    assert daemon.found("storks april", workspace=workspace) == [written["path"]]
    (root / "heron.md").unlink()
    until(lambda: daemon.found("grey heron", workspace=workspace) == [])
    assert daemon.untruths() == []
    assert daemon.call("ping")["pong"]


def test_vectors_of_a_server_are_compared_without_numpy(daemon, server, tmp_path):
    """Only the model in the process needs it; the answer says all the same what was missing."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    workspace = daemon.add(root)
    answer = daemon.call("search", query="quite other words", workspace=workspace, mode="vector")
    assert (answer["mode"], answer["degraded"]) == ("vector", ["numpy-missing"])
    assert [hit["path"] for hit in answer["hits"]] == ["heron.md"]
    assert daemon.untruths() == []


def test_postings_are_not_kept_after_a_purge(tmp_path, monkeypatch):
    """Rows cannot be made anew, so they would still have the words of a note that is forgotten."""
    monkeypatch.setattr(postings_table, "MIN_DOCUMENTS", 2)
    notes = Notes(tmp_path)
    notes.save(many_notes(30))
    assert made(notes)
    assert len(keys(notes)) > 50
    notes.index.close()
    purge = """
import asyncio, pathlib, sys
sys.modules["numpy"] = None
from tests_support import Notes, context_of
from memd.workspace.backlog import Backlog
from memd.workspace.embed_loop import EmbedLoop
from memd.workspace.maintenance import Maintenance

notes = Notes(pathlib.Path(sys.argv[1]))
notes.remove("facts/10.md")
assert notes.findings() == []
context = context_of(notes)
maintenance = Maintenance(context, EmbedLoop(context, Backlog()), is_idle=lambda: True)
assert asyncio.run(maintenance.purge_now()).sources == 1
"""
    done = run(purge, str(tmp_path))
    assert done.returncode == 0, done.stderr
    notes.open()
    assert keys(notes) == {}
    notes.index.close()


def test_what_needs_numpy_says_so(daemon, tmp_path):
    """Explanations and `similar`: the error names the missing package and how to install it."""
    root = folder_of(tmp_path / "notes", {"heron.md": "# Heron\n\nA grey bird that stands by the weir.\n"})
    workspace = daemon.add(root)
    for method, params in (
        ("search", {"query": "heron", "explain": True}),
        ("why", {"query": "heron", "path": "heron.md"}),
        ("similar", {"path": "heron.md"}),
    ):
        with pytest.raises(RpcError, match="needs numpy") as told:
            daemon.call(method, workspace=workspace, **params)
        assert told.value.code == "MEMD_EMBEDDER"


def test_a_client_without_numpy_gets_its_first_answer_at_once(daemon, tmp_path):
    """Vectors that never come are not waited for, by init, search or a restart."""
    root = folder_of(tmp_path / "notes", {"heron.md": "# Heron\n\nA grey bird that stands by the weir.\n"})
    assert daemon.memctl("init", str(root)).returncode == 0
    for _ in range(2):
        done = daemon.memctl("search", "--json", "--workspace", str(root), "heron")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["degraded"] == ["numpy-missing"]
        assert daemon.stop() == 0
        daemon.start()

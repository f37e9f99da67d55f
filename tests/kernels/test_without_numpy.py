"""Without numpy the same index gives the same answers, and a daemon lives and answers by keyword."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon, until
from tests_support import Notes

from memd.kernels import kernel

TIE = 1e-5  # scores that are nearer than float32 tells apart may stand in either order, also next to 0
RANK_TIE = 1 / 60 - 1 / 61  # what one place more or less is worth under rrf, where places may be swapped
TEXT = """
heron weir badger sett otter river lamp oil bread rye salt kiln clay glaze wheel loom yarn dye indigo
madder copper tin forge anvil hammer rope sail mast tide moon 記憶 検索 东京 北京 기억
"""
WORDS = [*TEXT.split(), *(f"word{number}" for number in range(60))]  # enough to fill every dimension
QUERIES = [
    ("heron weir", {}),
    ("copper forge and the anvil of the hammer", {}),
    ('"tide moon" sail', {}),
    ("rye bread -salt", {}),
    ("記憶 検索", {}),
    ("北京的东京", {}),
    ("dig", {}),
    ("otter path:daily/**", {}),
    ("lamp tag:craft", {"fusion": "rrf"}),
    ("loom since:2026-02-01 until:2026-04-30", {"fusion": "rrf"}),
    ("nothing has these", {"min_score": 0.0}),
    (" ".join(WORDS), {}),
]
ASK = """
import json, pathlib, sys
if sys.argv[1] == "without":
    sys.modules["numpy"] = None
from tests_support import Notes
from memd.kernels import kernel

notes = Notes(pathlib.Path(sys.argv[2]))
answers = []
for text, settings in json.loads(sys.argv[3]):
    for mode in ("keyword", "vector", "hybrid"):
        answer = notes.search(text, mode=mode, limit=40, **settings)
        hits = [
            [hit.candidate.id, hit.candidate.score, hit.candidate.order, hit.candidate.tier, hit.snippet.text]
            for hit in answer.hits
        ]
        answers.append({"query": text, "mode": mode, "made": answer.mode, "hits": hits})
print(json.dumps({"kernel": kernel.NAME, "answers": answers}))
"""

TESTED = """
import sys

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] == "numpy":
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
import pytest
from memd.kernels import kernel

assert kernel.NAME == "plain"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def many_notes(count: int) -> dict[str, str]:
    """Return notes of random words: dated ones, tagged ones, some twice, more than either arm's pool."""
    rng = random.Random(11)
    notes = {}
    for number in range(count):
        text = " ".join(rng.choices(WORDS, k=rng.randint(3, 60)))
        tag = "---\ntags: [craft]\n---\n" if number % 3 == 0 else ""
        path = f"daily/2026-{1 + number % 6:02}-{1 + number % 28:02}-{number}.md" if number % 2 else ""
        notes[path or f"facts/{number}.md"] = f"{tag}# {rng.choice(WORDS)}\n\n{text}\n"
    notes["facts/twin.md"] = notes["facts/2.md"]
    return notes


def asked(how: str, folder: Path) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", ASK, how, str(folder), json.dumps(QUERIES)],
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[dict, dict]:
    """What one index, built with numpy, answers with and without it."""
    assert kernel.NAME == "numpy"
    folder = tmp_path_factory.mktemp("index")
    notes = Notes(folder)
    notes.save(many_notes(400))
    notes.index.close()
    return asked("with", folder), asked("without", folder)


def test_the_plain_kernel_takes_over_by_itself(both):
    """The two runs differ in their arithmetic, and every query has an answer to compare."""
    assert [run["kernel"] for run in both] == ["numpy", "plain"]
    modes = {(answer["mode"], answer["made"]) for answer in both[1]["answers"]}
    assert modes == {("keyword", "keyword"), ("vector", "vector"), ("hybrid", "hybrid")}
    assert sum(bool(answer["hits"]) for answer in both[0]["answers"]) > 2 * len(QUERIES)


@pytest.mark.parametrize("number", range(3 * len(QUERIES)))
def test_the_same_index_ranks_alike_without_numpy(both, number):
    """The same chunks with the same scores in the same order, but for ties."""
    tie = RANK_TIE if "fusion" in QUERIES[number // 3][1] else TIE
    with_numpy, without = (
        [hit for hit in run["answers"][number]["hits"] if hit[2] > TIE]  # a cosine of 1e-9 is one of 0
        for run in both
    )
    assert len(with_numpy) == len(without)
    places = {hit[0]: hit for hit in without}
    for dense, plain in zip(with_numpy, without, strict=True):
        assert dense[2] == pytest.approx(plain[2], abs=tie)
        same = places.get(dense[0])
        if same is None:  # it tied with the last one, which is here in its place
            assert dense[2] == pytest.approx(without[-1][2], abs=tie)
        else:
            assert dense[1:3] == pytest.approx(same[1:3], abs=tie)
            assert dense[3:] == same[3:]


@pytest.mark.parametrize("tests", ["test_inverted.py", "test_inverted_states.py"])
def test_the_file_of_postings_is_true_without_numpy(tests):
    """Everything that is tested of it holds for the plain kernel, too."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", TESTED, str(root / "tests" / "index" / tests)],
        env={"PYTHONPATH": str(root / "tests"), "PATH": os.environ["PATH"], "MEMD_EXAMPLES": "4"},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture
def daemon(tmp_path):
    """A daemon that cannot import numpy, as on a machine where it is broken or was never installed."""
    home = tmp_path / "home"
    blocked = tmp_path / "blocked"
    for folder in (home, blocked):
        folder.mkdir()
    (blocked / "sitecustomize.py").write_text("import sys\nsys.modules['numpy'] = None\n")
    daemon = Daemon(home)
    daemon.environment["PYTHONPATH"] = str(blocked)
    yield daemon.start()
    daemon.close()


def test_a_daemon_without_numpy_answers_by_keyword_and_says_so(daemon, tmp_path):
    """Degraded, with its own code, in search, status and health; saved, changed and deleted notes follow."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    workspace = daemon.add(root)
    for mode in ("hybrid", "vector", "keyword"):
        answer = daemon.call("search", query="grey heron", workspace=workspace, mode=mode)
        assert [hit["path"] for hit in answer["hits"]] == ["heron.md"]
        assert (answer["mode"], answer["degraded"]) == (
            "keyword",
            [] if mode == "keyword" else ["numpy-missing"],
        )
    status = daemon.call("status")
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
    assert daemon.call("ping")["pong"]


def test_a_client_without_numpy_gets_its_first_answer_at_once(daemon, tmp_path):
    """Vectors that never come are not waited for, by init, search or a restart."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "heron.md").write_text("# Heron\n\nA grey bird that stands by the weir.\n")
    assert daemon.memctl("init", str(root)).returncode == 0
    for _ in range(2):
        done = daemon.memctl("search", "--json", "--workspace", str(root), "heron")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["degraded"] == ["numpy-missing"]
        assert daemon.stop() == 0
        daemon.start()

"""The command `memctl eval`: what it prints, its exit codes, and that it leaves nothing behind."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from daemon_process import Daemon, folder_of, until
from patience import PATIENCE, ran
from scripted_peer import AS_IN_A_TERMINAL

from memctl import exits
from memctl.__main__ import main
from memctl.commands import eval as eval_command
from memctl.output import eval as eval_page
from memd.embedding.model import MODEL_FILE, TOKENIZER_FILE

FILLER = "It was settled in the weekly round, and nobody has looked back since then.\n"
# What a heading says and what stands below it mean the same and share no word.
NOTES = {
    "queue.md": "---\ntitle: Retiring the message broker\n---\n# Retiring the message broker\n\n"
    f"We left Kafka and RabbitMQ for tables in Postgres.\n{FILLER}",
    "people/ada.md": "Ada\n\nFavourite hot beverages\n---\n\n"
    f"She drinks smoked tea in a cup, never coffee.\n{FILLER}",
    "daily/2026-05-01-standup.md": "# Quarrel about button colours\n\n"
    f"The designers disagree: red or green for what users click on.\n{FILLER}",
    "index.md": "# Contents\n\n- [Retiring the message broker](queue.md)\n- something else entirely\n",
    "plain.md": f"Nothing with a heading.\n{FILLER}",
}
SAMPLE = Path(__file__).parents[1] / "sample"
PAIRS = Path(__file__).parents[1] / "pairs.jsonl"  # questions and the notes of the sample that answer
IGNORED = {"drafts/secret.md": f"# Unpublished xylophone memoirs\n\nNever to be copied.\n{FILLER}"}
GOLDEN = """\
# asked last week
{"query": "which tea does Ada drink", "path": "people/ada.md", "line": 6}
{"query": "kafka", "path": "queue.md"}
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A running daemon with a workspace; memctl runs in it."""
    home = tmp_path_factory.mktemp("eval")
    root = folder_of(home / "notes", NOTES | IGNORED)
    (root / ".gitignore").write_text("drafts/\n")
    daemon = Daemon(home)
    daemon.start()
    daemon.root = Path(daemon.add(root))
    # Enough notes that a signal comes before the end.
    shutil.copytree(SAMPLE, home / "sample")
    daemon.large = Path(daemon.add(home / "sample"))
    # The notes that answer the first questions.
    daemon.asked = [json.loads(line) for line in PAIRS.read_text().splitlines()[:10]]
    for path in {one["path"] for one in daemon.asked}:
        (home / "answers" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLE / path, home / "answers" / path)
    daemon.answers = Path(daemon.add(home / "answers"))
    yield daemon
    daemon.close()


@pytest.fixture
def memctl(daemon):
    """Run memctl in the workspace; afterwards nothing is left, and no note has changed."""

    def run(*argv, **options):
        return daemon.memctl(*argv, cwd=daemon.root, **options)

    run.root = daemon.root
    before = told_of(daemon.root)
    yield run
    assert left_behind(daemon) == []
    assert told_of(daemon.root) == before


def told_of(root):
    """Return path → text and stamp of all that is in a folder."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def left_behind(daemon):
    """Return what there is beyond the one workspace: folders of copies, their indexes, registrations."""
    registered = {one["root"] for one in daemon.call("workspace.list")["workspaces"]}
    own = {str(daemon.root), str(daemon.large), str(daemon.answers)}
    indexes = {hashlib.sha256(root.encode()).hexdigest()[:16] for root in own}
    return [*(registered - own), *({path.name for path in daemon.state.iterdir() if path.is_dir()} - indexes)]


@pytest.fixture
def golden(tmp_path):
    """Write a golden file and return its path."""

    def write(text=GOLDEN):
        (tmp_path / "golden.jsonl").write_text(text)
        return str(tmp_path / "golden.jsonl")

    return write


@pytest.fixture(scope="module")
def of_headings(daemon):
    """The report of one measurement with questions from headings, for the tests that only read it."""
    done = daemon.memctl("eval", "--json", "--seed", "7", cwd=daemon.root)
    assert re.search(
        r"private copy of 5 notes .* about \d+ chunks: roughly \d+ s, then \d+ questions\. Ctrl-C ends it",
        done.stderr,
    )
    return json.loads(done.stdout)


def test_json_has_every_figure_and_every_result(of_headings, daemon):
    told = of_headings
    assert told["workspace"] == str(daemon.root)
    assert told["questions"] == {
        "from": "headings", "notes": 5, "headings": 4, "left_out": {"too general": 1}, "usable": 3, "seed": 7,
    }  # fmt: skip
    page = eval_page.people(told, colour=False)
    assert "3 questions from headings of 5 notes, asked of a copy without these headings" in page
    assert re.findall(r"(?m)^(\w+) +\d\.\d\d\d ", page) == ["hybrid", "vector", "keyword", "grep"]
    assert set(told["arms"]["hybrid"]) == {"measures", "interval", "latency_ms", "degraded"}
    assert [one["over"] for one in told["differences"]] == ["vector", "keyword", "grep"]
    tea = next(one for one in told["results"] if one["query"] == "Favourite hot beverages")
    assert tea["answers"] == [{"path": "people/ada.md", "line": 6}]
    assert set(tea["arms"]["hybrid"]["paths"]) <= set(NOTES)
    assert tea["arms"]["vector"]["rank"] == 1
    assert tea["arms"]["vector"]["passage@10"] == 1


@pytest.fixture(scope="module")
def models(daemon):
    """A model as `memctl models add` leaves it: the shipped one with questions made useless."""
    folder = folder_of(daemon.home / ".local/share/memd/models/misled")
    shutil.copyfile(MODEL_FILE, folder / "model.onnx")
    shutil.copyfile(TOKENIZER_FILE, folder / "tokenizer.json")
    prefix = "lattice chromodynamics of quarks " * 8
    record = {"repo": "people/misled", "files": {}, "query_prefix": prefix}
    (folder / "memd.json").write_text(json.dumps(record))


@pytest.mark.usefixtures("models")
def test_another_model_is_held_against_the_own_one(memctl, daemon, tmp_path):
    asked = [{"query": one["query"], "path": one["path"]} for one in daemon.asked]
    (tmp_path / "golden.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in asked))
    where = ("--golden", str(tmp_path / "golden.jsonl"), "-w", str(daemon.answers))
    plot = tmp_path / "eval.svg"
    done = memctl("eval", *where, "--compare", "misled", "--no-grep", "--json", "--plot", str(plot))
    assert done.returncode == exits.OK, done.stderr
    assert re.search(r"embedding \d+ chunks with misled: roughly", done.stderr)
    told = json.loads(done.stdout)
    assert set(told["arms"]) == {"hybrid", "vector", "keyword", "hybrid@misled", "vector@misled"}
    compared = told["compared"]
    assert (compared["model"], compared["own"]) == ("misled", "all-MiniLM-L6-v2")
    assert min(compared["ms_per_chunk"].values()) > 0
    [_, vector] = compared["differences"]
    assert (vector["arm"], vector["over"]) == ("vector@misled", "vector")
    assert vector["ndcg@10"] < 0
    assert vector["interval"][1] < 0
    assert [one["over"] for one in told["differences"]] == ["vector", "keyword"]
    page = eval_page.people(told, colour=False)
    own, other = page.split("with misled in place of all-MiniLM-L6-v2\n")
    assert re.search(r"(?m)^vector +\d\.\d\d\d ", own)
    assert re.search(r"(?m)^vector +\d\.\d\d\d ", other)
    assert "vector@misled - vector: " in other
    assert re.search(r"a chunk takes [\d.]+ ms with misled, [\d.]+ ms with all-MiniLM-L6-v2: ", other)
    drawn = "".join(ET.parse(plot).getroot().itertext())
    assert "* with misled" in drawn
    assert f"{told['arms']['hybrid']['measures']['ndcg@10']:.2f}" in drawn
    assert str(plot) in done.stderr


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("named", "status", "said"),
    [
        ("nobody", exits.NOT_FOUND, "there are: misled"),
        ("all-MiniLM-L6-v2", exits.USAGE, "all-MiniLM-L6-v2 is already the model of"),
    ],
)
def test_what_cannot_be_compared_is_told_at_once(memctl, named, status, said):
    done = memctl("eval", "--compare", named)
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr


def test_a_heading_that_is_asked_for_is_held_out(of_headings):
    queries = {one["query"] for one in of_headings["results"]}
    assert "Retiring the message broker" in queries
    for one in of_headings["results"]:
        assert one["arms"]["keyword"]["paths"] == []
        assert one["arms"]["grep"]["paths"] == []
        assert one["arms"]["vector"]["rank"]


def test_only_sources_are_copied(of_headings):
    assert of_headings["questions"]["notes"] == len(NOTES)
    assert not any("xylophone" in one["query"] for one in of_headings["results"])


@pytest.fixture(scope="module")
def of_golden(daemon, tmp_path_factory):
    """One measurement with a golden file, and gates that it reaches, for the tests that read it."""
    folder = tmp_path_factory.mktemp("golden")
    (folder / "golden.jsonl").write_text(GOLDEN)
    demands = ("0.1", "recall@10=1", "MRR@10=0.9", "passage@10=1")
    gates = (option for demand in demands for option in ("--fail-under", demand))
    asked = ("eval", "--json", "--golden", str(folder / "golden.jsonl"))
    return daemon.memctl(*asked, *gates, cwd=daemon.root)


def test_a_golden_file_asks_the_notes_as_they_are(of_golden):
    tea, queue = json.loads(of_golden.stdout)["results"]
    assert (tea["query"], tea["arms"]["hybrid"]["rank"], tea["arms"]["hybrid"]["passage@10"]) == (
        "which tea does Ada drink", 1, 1,
    )  # fmt: skip
    assert queue["arms"]["grep"]["paths"] == ["queue.md"]
    assert "passage@10" not in queue["arms"]["hybrid"]


@pytest.fixture(scope="module")
def of_missed(daemon, tmp_path_factory):
    """One measurement whose second question names no source, with a gate missed and one reached."""
    golden = tmp_path_factory.mktemp("missed") / "golden.jsonl"
    missed = '{"query": "memoirs", "path": ["drafts/secret.md", "gone.md"]}'
    golden.write_text('{"query": "kafka", "path": "queue.md"}\n' + missed)
    gates = ("--fail-under", "recall@10=0.9", "--fail-under", "0.1")
    return daemon.memctl("eval", "--json", "--golden", str(golden), *gates, cwd=daemon.root)


def test_paths_that_are_no_sources_are_named_and_count_as_not_found(of_missed):
    assert "no sources, so not found: drafts/secret.md, gone.md" in of_missed.stderr
    told = json.loads(of_missed.stdout)
    assert told["questions"]["no_sources"] == ["drafts/secret.md", "gone.md"]
    assert told["arms"]["hybrid"]["measures"]["recall@10"] == 0.5
    assert told["arms"]["grep"]["measures"]["recall@10"] == 0.5  # though grep sees drafts/


def test_a_golden_file_of_another_workspace_is_said_to_be_one(memctl, golden):
    done = memctl("eval", "--golden", golden('{"query": "x", "path": "elsewhere.md"}\n'))
    assert done.returncode == exits.NOT_FOUND
    assert "is it the right one?" in done.stderr


@pytest.fixture(scope="module")
def of_failures(daemon, tmp_path_factory):
    """One measurement that lists its failures, on a system without grep, for the tests that read it."""
    folder = tmp_path_factory.mktemp("failures")
    text = '{"query": "kafka", "path": "queue.md"}\n{"query": "loud memoirs", "path": "drafts/secret.md"}\n'
    (folder / "golden.jsonl").write_text(text)
    asked = ("eval", "--failures", "--golden", str(folder / "golden.jsonl"))
    return daemon.memctl(*asked, cwd=daemon.root, env={"PATH": str(folder)})


def test_failures_are_listed_with_the_command_that_says_why(of_failures):
    assert "without an answer among the first 10 of hybrid: 1 of 2" in of_failures.stdout
    assert "memctl why drafts/secret.md 'loud memoirs'" in of_failures.stdout


def test_gates_that_are_reached_are_0(of_golden):
    assert of_golden.returncode == exits.OK
    gates = json.loads(of_golden.stdout)["gates"]
    assert [one["metric"] for one in gates] == ["ndcg@10", "recall@10", "mrr@10", "passage@10"]


def test_a_gate_that_is_missed_is_9_and_named(of_missed):
    assert of_missed.returncode == exits.UNHEALTHY
    assert "recall@10 of hybrid is 0.500, below 0.9" in of_missed.stderr
    assert [one["ok"] for one in json.loads(of_missed.stdout)["gates"]] == [False, True]


@pytest.mark.parametrize("wrong", ["1.5", "-1", "x", "recall@7=0.5", "=", "ndcg@10="])
def test_a_gate_must_be_a_figure_and_a_number(capsys, wrong):
    assert main(["eval", f"--fail-under={wrong}"]) == exits.USAGE
    assert "--fail-under" in capsys.readouterr().err


def test_a_passage_gate_needs_lines(memctl, golden):
    """It would be reached by a file that judges no line."""
    done = memctl(
        "eval", "--golden", golden('{"query": "kafka", "path": "queue.md"}\n'), "--fail-under",
        "passage@10=0.5",
    )  # fmt: skip
    assert done.returncode == exits.USAGE
    assert "names a line of a note" in done.stderr
    assert "asking" not in done.stderr


@pytest.mark.parametrize("target", ["notes.md", "quality.png", "/no/such/folder/q.svg"])
def test_a_plot_that_cannot_be_written_is_refused_at_once(capsys, target):
    assert main(["eval", "--plot", target]) == exits.USAGE
    assert target in (err := capsys.readouterr().err)
    assert "asking" not in err


def test_a_plot_without_matplotlib_is_refused_at_once(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(eval_command, "find_spec", lambda _: None)
    assert main(["eval", "--plot", str(tmp_path / "quality.svg")]) == exits.USAGE
    err = capsys.readouterr().err
    assert "pip install 'matplotlib>=" in err
    assert "asking" not in err


def test_a_smaller_sample_of_notes_can_be_copied(memctl):
    done = memctl("eval", "--json", "--max-notes", "20", "-w", "../sample")
    assert json.loads(done.stdout)["questions"]["notes"] == 20
    assert "private copy of 20 notes" in done.stderr


def test_without_a_model_there_is_no_vector_arm(daemon, tmp_path):
    """Memd would answer by words, and the table would call that vectors."""
    root = tmp_path / "words"
    daemon.add_notes(root, NOTES)
    done = daemon.memctl("eval", "--json", cwd=root)
    daemon.call("workspace.remove", path=str(root))
    assert set(json.loads(done.stdout)["arms"]) == {"hybrid", "keyword", "grep"}
    assert "provider = none" in done.stderr


def test_without_grep_on_the_system_the_others_are_measured(of_failures):
    assert "grep is not installed" in of_failures.stderr
    arms = re.findall(r"(?m)^(hybrid|vector|keyword|grep) +\d\.\d\d\d ", of_failures.stdout)
    assert arms == ["hybrid", "vector", "keyword"]


def test_notes_without_a_heading_that_says_something_end_with_1(daemon, tmp_path):
    root = folder_of(tmp_path / "bare", {"a.md": "# Notes\n\n" + FILLER})
    daemon.call("workspace.add", path=str(root))
    done = daemon.memctl("eval", cwd=root)
    daemon.call("workspace.remove", path=str(root))
    assert done.returncode == exits.NONE
    assert "none of 1 heading in 1 note can be used as a question (1 too general)" in done.stderr
    assert "golden file" in done.stderr


def test_without_a_daemon_it_works_and_starts_none(daemon, of_headings):
    daemon.stop()
    try:
        alone = daemon.memctl("eval", "--json", "--seed", "7", cwd=daemon.root)
        assert not daemon.listens()
    finally:
        daemon.start()
    assert alone.returncode == exits.OK, alone.stderr
    ours, theirs = (told["arms"] for told in (json.loads(alone.stdout), of_headings))
    assert {arm: facts["measures"] for arm, facts in ours.items()} == {
        arm: facts["measures"] for arm, facts in theirs.items()
    }


def test_a_folder_that_is_not_registered_is_no_workspace(daemon, tmp_path):
    """As for every command: it may have come with a clone, and nobody has said that it may be read."""
    folder_of(tmp_path, {"memory/config.toml": ""})
    done = daemon.memctl("eval", cwd=tmp_path)
    assert done.returncode == exits.WORKSPACE
    assert "memctl init" in done.stderr


def folders(daemon):
    """Return the private folders that are there now."""
    return sorted(daemon.state.glob("eval-*"))


def started(daemon, *argv):
    """Start memctl eval as a terminal would, and wait until its index is being made."""
    before = folders(daemon)
    process = subprocess.Popen(
        [*AS_IN_A_TERMINAL, "eval", *argv],
        env=daemon.environment | {"PYTHONPATH": str(Path(exits.__file__).parents[1])},
        cwd=daemon.large, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(
        lambda: (
            {path.parents[1] for path in daemon.state.glob("eval-*/*/index.db")} - {*before}
            or process.poll() is not None
        )
    )
    assert process.poll() is None, process.communicate()
    assert [folder.stat().st_mode & 0o077 for folder in folders(daemon)] == [0]  # nobody else may enter it
    return process


def measuring(process):
    """Return the number of the process that measures for memctl."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (signal.SIGINT, exits.INTERRUPTED),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_signal_to_memctl_ends_it_and_its_index_is_gone(daemon, memctl, sent, status):
    process = started(daemon)
    process.send_signal(sent)
    _, err = process.communicate(timeout=30 * PATIENCE)  # to the end of both: they share stderr
    assert process.returncode == status, err.decode()
    assert b"Traceback" not in err
    until(lambda: not folders(daemon))


def test_a_measurement_that_hangs_ends_with_memctl(server, tmp_path):
    """Nothing is written meanwhile, so that only its closed stdin tells it that nobody waits."""
    own, root = Daemon(tmp_path), tmp_path / "notes"
    try:
        own.start()
        server.make_workspace(own, root)
        own.call("workspace.add", path=str(root))
        own.stop()
        (root / "tea.md").write_text(NOTES["people/ada.md"])
        own.root = own.large = root
        server.behaviour = "hang"
        process = started(own)
        assert server.hanging.wait(20 * PATIENCE)
        process.kill()
        process.communicate(timeout=30 * PATIENCE)
        until(lambda: not folders(own))
    finally:
        own.close()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_measuring_process_ends_it_orderly(daemon, memctl, sent):
    process = started(daemon)
    os.kill(measuring(process), sent)
    _, err = process.communicate(timeout=30 * PATIENCE)
    assert process.returncode == exits.INTERNAL
    assert f"ended with exit code {128 + sent}" in err.decode()
    assert b"Traceback" not in err
    assert folders(daemon) == []


def test_what_a_killed_run_left_is_removed_when_the_daemon_starts(daemon):
    """A copy of notes must not lie about until somebody measures again."""
    old = killed(daemon)
    daemon.stop()
    daemon.start()
    until(lambda: not old.exists())


def killed(daemon):
    """Kill a process that measures; return what it has left."""
    process = started(daemon)
    os.kill(measuring(process), signal.SIGKILL)
    process.communicate()
    [old] = folders(daemon)
    return old


def test_the_next_run_removes_what_a_killed_one_left_and_nothing_of_one_that_is_alive(daemon, memctl):
    """Nobody can answer kill -9; two runs at once do not disturb each other."""
    old = killed(daemon)
    running = started(daemon, "--max-notes", "20")
    assert not old.exists()
    pid = measuring(running)
    os.kill(pid, signal.SIGSTOP)
    [folder] = folders(daemon)
    try:
        assert memctl("eval").returncode == exits.OK
        assert folder.exists()
    finally:
        os.kill(pid, signal.SIGCONT)
    running.communicate(timeout=60 * PATIENCE)
    assert running.returncode == exits.OK


def test_other_commands_do_not_load_it():
    program = (
        "import sys; from memctl.__main__ import main; from memctl.commands import COMMANDS\n"
        "for name in COMMANDS: name == 'eval' or main([name, '--help'])\n"
        "unwanted = ('memd', 'memctl.output.eval', 'subprocess')\n"
        "sys.exit([name for name in sys.modules if name.startswith(unwanted)] or 0)\n"
    )
    done = ran(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(Path(exits.__file__).parents[1])}
    )
    assert (done.returncode, done.stderr) == (0, "")

"""Which workspace and which path is meant: by name, by the current folder, and after a move."""

import json
from pathlib import Path

import pytest
from daemon_process import Daemon, Workspace, folder_of, until

from memctl import exits
from memd.registry import workspace_at

pytestmark = pytest.mark.usefixtures("shared_daemon")


@pytest.fixture
def two(daemon: Daemon, tmp_path: Path) -> tuple[Daemon, Path, Path]:
    """A daemon with two workspaces that both know of the heron, one better than the other."""
    texts = {"work": "heron heron heron\n", "private": "A heron, an otter, a badger and a weir.\n"}
    work, private = (daemon.workspace(tmp_path / name, {"birds/heron.md": texts[name]}) for name in texts)
    return daemon, work.root, private.root


def outside(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "elsewhere")


def test_hits_of_several_workspaces_are_merged_by_score(two, tmp_path):
    daemon, work, home = two
    here = outside(tmp_path)
    for which in (("--all",), ("-w", str(home), "-w", str(work / "birds"), "-w", str(work))):
        answer = json.loads(daemon.memctl("search", *which, "--json", "heron", cwd=here).stdout)
        scores = [hit["score"] for hit in answer["hits"]]
        assert scores == sorted(scores, reverse=True)
        assert {(hit["workspace"], hit["path"]) for hit in answer["hits"]} == {
            (str(work), "birds/heron.md"),
            (str(home), "birds/heron.md"),
        }
        assert {one["workspace"] for one in answer["answers"]} == {str(work), str(home)}
        files = daemon.memctl("search", *which, "--files", "heron", cwd=work).stdout.split()
        assert sorted(files) == sorted(f"{root}/birds/heron.md" for root in (work, home))
        lines = daemon.memctl("search", *which, "--vimgrep", "heron", cwd=work).stdout.splitlines()
        assert all(Path(line.split(":")[0]).is_file() for line in lines)
    page = daemon.memctl("search", "--all", "heron", cwd=here)
    assert (page.returncode, page.stderr) == (0, "")
    for root in (work, home):  # once: the path names the workspace, too
        assert page.stdout.count(f"{root}/birds/heron.md:1 ") == page.stdout.count(f"{root}") == 1
    found = daemon.memctl("search", "--all", "--jsonl", "--limit", "1", "heron", cwd=here).stdout
    assert len(found.splitlines()) == 1


def test_scores_of_another_model_stand_in_a_group_of_their_own(two, tmp_path):
    daemon, _, home = two
    (home / "memory" / "config.toml").write_text('provider = "none"\n')
    daemon.call("index", workspace=str(home))
    done = daemon.memctl("search", "--all", "--jsonl", "heron", cwd=outside(tmp_path))
    models = [json.loads(line)["model_id"] for line in done.stdout.splitlines()]
    assert set(models) == {None, models[0] or models[-1]}
    assert "2 groups" in done.stderr
    assert "words only" in done.stderr


def test_one_of_several_that_cannot_answer_keeps_no_other_from_it(two, tmp_path):
    daemon, work, home = two
    (home / "memory" / "config.toml").write_text("nonsense\n")
    until(lambda: any(one["state"] == "error" for one in daemon.call("status")["workspaces"]))
    here = outside(tmp_path)
    done = daemon.memctl("search", "-w", str(work), "-w", str(home), "--files", "heron", cwd=here)
    assert (done.returncode, done.stdout) == (0, f"{work}/birds/heron.md\n")
    assert f"memctl: {home}: " in done.stderr
    done = daemon.memctl("search", "--all", "--mode", "keyword", "grebe", cwd=here)
    assert (done.returncode, done.stdout) == (exits.CONFIG, "")


def test_no_good_match_anywhere_is_no_hit(two, tmp_path):
    daemon, work, home = two
    here = outside(tmp_path)
    done = daemon.memctl("search", "--all", "zzzqqq", cwd=here)
    assert (done.returncode, done.stdout) == (exits.NONE, "")
    assert "no good match" in done.stderr
    nearest = daemon.memctl("search", "--all", "--nearest", "--min-score", "0", "zzzqqq", cwd=here).stdout
    assert all(f"{root}/birds/heron.md:1 " in nearest for root in (work, home))


def test_outside_of_all_the_only_one_is_searched_and_named(workspace, tmp_path):
    daemon, root = workspace
    here = outside(tmp_path)
    done = daemon.memctl("search", "--files", "sourdough", cwd=here)
    assert (done.returncode, done.stdout) == (0, f"{root}/0.md\n")
    assert f"workspace {root}, the only one" in done.stderr
    assert daemon.memctl("get", f"{root}/0.md", cwd=here).stdout == "Sourdough rises overnight.\n"
    inside = daemon.memctl("search", "--files", "sourdough", cwd=root)
    assert inside.stderr == ""
    other = folder_of(tmp_path / "other")
    daemon.add(other)
    done = daemon.memctl("search", "sourdough", cwd=here)
    assert done.returncode == exits.WORKSPACE
    assert all(part in done.stderr for part in (str(root), str(other), "--all", "--workspace"))


def test_all_of_none_is_none(daemon, tmp_path):
    done = daemon.memctl("search", "--all", "x", cwd=tmp_path)
    assert done.returncode == exits.WORKSPACE
    assert "memctl init" in done.stderr


@pytest.fixture
def around(daemon: Daemon, tmp_path: Path) -> Workspace:
    """A workspace with three notes, two of them in a folder of their own."""
    below = {f"sub folder/{name}.md": f"The {name}.\n" for name in ("otter", "badger")}
    return daemon.workspace(tmp_path / "notes", {"heron.md": "A heron.\n", **below})


def test_a_folder_in_a_workspace_takes_no_notes_from_it_unasked(around):
    done = around.daemon.memctl("init", str(around.root / "sub folder"))
    assert (done.returncode, done.stdout) == (exits.REFUSED, "")
    assert "2 of its notes" in done.stderr
    assert f"memctl init --nested '{around.root}/sub folder'" in done.stderr
    assert not (around.root / "sub folder" / "memory").exists()
    assert around.found("otter")[0] == "sub folder/otter.md"


def test_who_means_it_gets_a_workspace_in_a_workspace(around):
    daemon, root = around
    inner = root / "sub folder"
    assert daemon.memctl("init", "--nested", str(inner)).returncode == 0
    assert daemon.memctl("init", str(inner)).returncode == 0
    assert daemon.memctl("search", "--files", "otter", cwd=inner).stdout.split()[0] == "otter.md"
    assert f"{inner} is a separate workspace" in daemon.memctl("init", str(root)).stderr
    daemon.call("index", workspace=str(root))
    assert daemon.found("otter", workspace=str(root)) in ([], ["heron.md"])


def test_a_folder_without_notes_is_nobodys(around):
    assert around.daemon.memctl("init", str(folder_of(around.root / "empty"))).returncode == 0


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("\n", exits.REFUSED)])
def test_at_a_terminal_it_asks(around, typed, status):
    code, _, seen = around.daemon.at_a_terminal(typed, "init", str(around.root / "sub folder"))
    assert (code, "2 of its notes" in seen, "[y/N]" in seen) == (status, True, True)
    assert (around.root / "sub folder" / "memory").exists() is (status == 0)


def test_commands_print_and_take_paths_as_they_are_seen_from_here(around):

    def run(*argv):
        done = around.daemon.memctl(*argv, cwd=around.root / "sub folder")
        assert done.returncode == exits.OK, done.stderr
        return done.stdout

    path = run("add", "--topic", "t", "--title", "Egrets", "They stand beside the badgers.").strip()
    assert "beside the badgers" in run("get", path)
    assert run("forget", path)
    assert run("search", "--files", "--path", "*.md", "badger") == "badger.md\n"
    hits = json.loads(run("similar", "--json", "--path", "../heron.md", "otter.md"))["hits"]
    assert [hit["path"] for hit in hits] == ["heron.md"]
    assert "The otter." in run("recall", "--path", "otter.md", "otter")


@pytest.fixture
def notes(daemon, server, tmp_path):
    """A workspace with twenty notes and an entry."""
    root = tmp_path / "notes"
    server.make_workspace(daemon, root)
    texts = {f"{n}.md": f"# Note {n}\n\nThe heron has {n} feathers.\n" for n in range(20)}
    daemon.add(folder_of(root, texts))
    daemon.call("extract_memory", topic="t", title="Port", content="It is 5433.", workspace=str(root))
    daemon.call("index", workspace=str(root))
    return root


def test_vectors_and_the_journal_follow_a_moved_folder(daemon, server, notes, tmp_path):
    new = tmp_path / "texts"
    notes.rename(new)
    server.documents.clear()
    done = daemon.memctl("workspaces", "move", str(notes), str(new), "--json")
    assert done.returncode == exits.OK, done.stderr
    assert json.loads(done.stdout) == {"moved": [{"from": str(notes), "root": str(new)}]}
    daemon.call("index", workspace=str(new))
    assert daemon.found("heron 7 feathers", workspace=str(new), mode="vector")
    assert server.documents == []
    assert [one["root"] for one in daemon.call("workspace.list")["workspaces"]] == [str(new)]
    assert len(daemon.call("journal", workspace=str(new))["records"]) == 1
    assert not list(daemon.state.glob(f"**/{workspace_at(notes, daemon.state).index_dir.name}*"))


def test_a_folder_that_was_not_moved_is_refused(daemon, notes, tmp_path):
    pid = daemon.call("memd.hello")["pid"]
    for old, new, said in (
        (notes, tmp_path / "texts", "Move the folder first: mv "),
        (tmp_path / "texts", notes, "is not in a registered workspace"),
    ):
        done = daemon.memctl("workspaces", "move", str(old), str(new))
        assert done.returncode == exits.WORKSPACE, done.stderr
        assert said in done.stderr
    gone = tmp_path / "gone"
    notes.rename(gone)
    (tmp_path / "texts").mkdir()
    done = daemon.memctl("workspaces", "move", str(notes), str(tmp_path / "texts"))
    assert (done.returncode, "it is not the folder" in done.stderr) == (exits.WORKSPACE, True)
    assert daemon.call("memd.hello")["pid"] == pid
    gone.rename(notes)
    assert daemon.memctl("search", "heron", cwd=notes).returncode == exits.OK

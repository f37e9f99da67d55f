"""`memctl ls` and the method `sources`: what is indexed, in which languages, and what is not, and why."""

import json
import shlex
from datetime import datetime

import pytest
from daemon_process import NO_MODEL, folder_of, until

from memctl import exits


@pytest.fixture(scope="module")
def listed(tmp_path_factory, module_daemon):
    """A workspace without a model: notes, a private one, and files that are skipped."""
    root = tmp_path_factory.mktemp("ls") / "notes"
    texts = {
        "heron.md": "---\ntags: [bird]\n---\n# Grey heron\n\nBy the weir.\n",
        "daily/2026-05-01.md": "# Standup\n\nThe kettle.\n",
        "daily/2026-05-02.md": "# Standup\n\nThe lathe.\n",
        "kept.md": "---\nprivate: true\n---\n# Kept\n\nNobody else reads it.\n",
        "daily/latin.md": "Größe".encode("utf-16"),
    }
    folder_of(root).joinpath("link.md").symlink_to("/etc/hostname")
    return module_daemon.start().workspace(root, NO_MODEL | texts)


def ls(listed, *arguments, cwd=""):
    """Run it in a folder of the workspace; return its exit code and lines."""
    done = listed.memctl("ls", *arguments, cwd=listed.root / cwd)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_notes_are_listed_with_their_sizes_and_skipped_files_with_the_reason(listed):
    status, lines, err = ls(listed)
    assert status == exits.OK
    assert [line.split()[4] for line in lines[:4]] == [
        "daily/2026-05-01.md", "daily/2026-05-02.md", "heron.md", "kept.md",
    ]  # fmt: skip
    assert lines[0].startswith("2026-05-01      1/0  ")
    assert lines[2].endswith("  heron.md  Grey heron")
    assert lines[4:] == [
        "skipped: daily/latin.md is not UTF-8 text",
        "skipped: link.md links to a place outside of the workspace",
    ]
    assert "4 notes, 4 chunks, 0 of them found by meaning" in err
    assert "2 files skipped" in err


@pytest.mark.parametrize(
    ("arguments", "cwd", "paths"),
    [
        ((), "daily", ["2026-05-01.md", "2026-05-02.md", "latin.md"]),
        (("..",), "daily", None),
        (("daily",), "", ["daily/2026-05-01.md", "daily/2026-05-02.md", "daily/latin.md"]),
        (("*.md", "--since", "2026-05-02"), "daily", ["2026-05-02.md"]),
        (("--tag", "bird"), "", ["heron.md"]),
        (("--skipped",), "daily", ["latin.md"]),
        (("none-such",), "", []),
        (("none-such", "--tag", "bird"), "", []),
    ],
)
def test_paths_and_filters_narrow_the_list(listed, arguments, cwd, paths):
    status, lines, err = ls(listed, *arguments, cwd=cwd)
    named = [line.split()[1 if line.startswith("skipped") else 4] for line in lines]
    assert len(named) == 6 if paths is None else named == paths
    assert status == (exits.OK if named else exits.NOT_FOUND)
    assert ("there is no " in err) == (not named)


def test_a_pattern_without_a_note_is_no_mistake(listed):
    status, _, err = ls(listed, "none-such*")
    assert (status, "memctl why PATH WORDS" in err) == (exits.NONE, True)


def test_json_is_an_object_a_line(listed):
    _, lines, _ = ls(listed, "--json")
    objects = [json.loads(line) for line in lines]
    assert objects[2]["title"] == "Grey heron"
    assert (objects[2]["tags"], objects[2]["chunks"], objects[2]["vectors"]) == (["bird"], 1, 0)
    assert objects[2]["modified"] == pytest.approx((listed[1] / "heron.md").stat().st_mtime)
    assert objects[4] == {"path": "daily/latin.md", "reason": "not-utf8", "text": "is not UTF-8 text"}


def test_pages_are_followed_to_the_end(listed):
    for kind, skipped in (("sources", False), ("skipped", True)):
        whole = listed.call("sources", skipped=skipped)[kind]
        found, after = [], ""
        while after is not None:
            page = listed.call("sources", skipped=skipped, after=after, limit=1)
            found += page[kind]
            after = page["next"]
        assert found == whole


def test_an_entry_says_when_an_agent_was_last_given_it(listed):
    entry = listed.call("extract_memory", topic="birds", title="Kestrels", content="They hover.\n")

    def recalled():
        _, lines, _ = ls(listed, "--json")
        return {one["path"]: one["recalled"] for one in map(json.loads, lines) if "recalled" in one}

    listed.call("search", query="hover")
    assert set(recalled().values()) == {None}
    listed.call("search", query="hover", agent=True)
    day = f"{datetime.now().astimezone():%Y-%m-%d}"
    until(lambda: recalled()[entry["path"]] == day)
    assert list(recalled().values()).count(None) == len(recalled()) - 1
    assert any(line.endswith(f"Kestrels  (recalled {day})") for line in ls(listed)[1])
    listed.call("forget", path=entry["path"])


def test_pages_hold_every_source_once_in_the_order_of_paths(workspace):
    """A source that came or went between two pages moves no other one out of the list."""
    daemon, root = workspace
    (root / "b.md").write_text("---\ntitle: Second\ntags: [x]\nupdated: 2026-05-01\n---\nText.\n")
    (root / ".hidden.md").write_text("No source.\n")
    daemon.add(root)
    first = daemon.call("sources", workspace=str(root), limit=2)
    assert [one["path"] for one in first["sources"]] == ["0.md", "1.md"]
    (root / "0.md").unlink()
    daemon.add(root)
    second = daemon.call("sources", workspace=str(root), limit=2, after=first["next"])
    assert [one["path"] for one in second["sources"]] == ["2.md", "b.md"]
    assert second["next"] is None
    assert second["sources"][1] == {
        "path": "b.md", "title": "Second", "tags": ["x"], "date": "2026-05-01", "origin": "human",
        "chunks": 1, "vectors": 1, "modified": (root / "b.md").stat().st_mtime, "recalled": None,
    }  # fmt: skip
    assert daemon.call("sources", workspace=str(root), after="zzz")["sources"] == []


def test_init_proposes_the_languages_of_the_notes(daemon, tmp_path):
    root = folder_of(tmp_path / "notes", {"hof.md": "# Haus\n\nDie Mieter haben den Hof nicht geputzt.\n"})
    for number in range(30):
        (root / f"{number}.md").write_text(f"# Tag {number}\n\nWir haben die Rechnung nicht bezahlt.\n")
    # On a loaded machine the first run ends before the words are there.
    said = until(lambda: "in German" in (said := daemon.memctl("init", str(root)).stdout) and said)
    [line] = [line for line in said.splitlines() if line.startswith("words:")]
    ask = ("search", "--mode", "keyword", "--files", "-w", str(root), "Höfen")
    assert daemon.memctl(*ask).stdout == ""
    program, *command = shlex.split(line.partition("forms: ")[2])
    assert program == "memctl"
    assert daemon.memctl(*command).returncode == 0
    until(lambda: "hof.md" in daemon.memctl(*ask).stdout, 5)
    assert "words:" not in daemon.memctl("init", str(root)).stdout

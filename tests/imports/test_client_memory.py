"""Import of the memory that Claude Code, Codex, Gemini CLI and Cursor keep for themselves."""

import json
import re
import shutil
from pathlib import Path

import pytest

from memd.entries.entry import flaw
from memd.imports import client_memory, run
from memd.imports.memory_folder import NOT_UTF8
from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import split_lines
from memd.sources.privacy import is_private

FACT = "---\nname: queue-left\ndescription: why the queue was left\nmetadata:\n  type: project\n---\n"


def name_of(folder):
    """Return what Claude Code calls a project."""
    return re.sub("[^a-zA-Z0-9]", "-", str(folder))


class Home:
    """The clients' folders of one user."""

    def __init__(self, folder):
        self.folder = folder

    def claude(self, project, name="MEMORY.md", text="# What I know\n\nJobs are in Postgres.\n", cwd=None):
        """Write a note of Claude Code's about a project, and a session in *cwd*."""
        place = self.folder / ".claude/projects" / name_of(project)
        note = self.write(place / "memory" / name, text)
        if cwd:
            self.write(place / "5e55105e.jsonl", json.dumps({"type": "user", "cwd": str(cwd)}) + "\n")
        return note

    def gemini(self, name, root, text="# Notes\n\nTabs.\n"):
        """Write a note of Gemini CLI's about a project."""
        place = self.folder / ".gemini/tmp" / name
        if root:
            self.write(place / ".project_root", f"{root}\n")
        return self.write(place / "memory/MEMORY.md", text)

    @staticmethod
    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Home(folder)


def texts(workspace):
    return "".join(workspace.pages().values())


def values(text):
    return read_front_matter(split_lines(text)).values


def test_a_note_of_the_workspaces_project_becomes_a_page_that_names_it(workspace, home):
    """The name of the folder alone is enough, because sessions are deleted after a month."""
    note = home.claude(workspace.root)
    found = workspace.imports("claude-code", memory=True)
    [path] = found["new"]
    assert re.fullmatch(r"memory/archives/claude-code-memory/what-i-know-[0-9a-f]{6}\.md", path)
    page = (workspace.root / path).read_text()
    assert "Jobs are in Postgres." in page
    front = values(page)
    assert front["project"] == str(workspace.root)
    assert front["source"] == {"origin": "agent", "client": "claude-code", "session": str(note)}
    assert workspace.imports("claude-code", memory=True)["unchanged"] == 1


def test_a_page_keeps_the_front_matter_of_its_note(workspace, home):
    """As front matter, so that its fields are searched; keys that memd writes itself get another name."""
    own = "name: queue-left\nmetadata:\n  type: project\ntags: [queue]\nid: 7\nsource:\n  origin: human\n"
    own += "supersedes: mine.md\n"
    home.claude(workspace.root, "queue.md", f"---\n{own}---\nBecause of its memory alarms.\n")
    [path] = workspace.imports("claude-code", memory=True)["new"]
    page = (workspace.root / path).read_text()
    front = values(page)
    assert front["title"] == front["name"] == "queue-left"
    assert (front["metadata"], front["tags"]) == ({"type": "project"}, ["queue"])
    assert (front["original_id"], front["original_source"]) == ("7", {"origin": "human"})
    assert ("supersedes" in front, front["original_supersedes"]) == (False, "mine.md")
    assert front["source"]["origin"] == "agent"
    assert len(front["id"]) == 16
    assert page.endswith("\n---\n\nBecause of its memory alarms.\n")
    assert not flaw(page.encode(), path)


@pytest.mark.parametrize(
    "own",
    [
        "a: [", "{id: 7, name: x}", "a: &x 1\nb: *x", "? id\n: 7", "- a", "a: |\n  x\n...\nid: 7",
        "a: 1\na: 2\n'id' : 3", '"super\\u0073edes": mine.md', "? supersedes\n: mine.md",
        "!!str supersedes: mine.md", "Supersedes: mine.md",
    ],
)  # fmt: skip
def test_front_matter_that_does_not_fit_never_speaks_for_memd(workspace, home, own):
    note = home.claude(workspace.root, "odd.md", f"---\n{own}\n---\nThe bell tower.\n")
    [path] = workspace.imports("claude-code", memory=True)["new"]
    page = (workspace.root / path).read_text()
    front = values(page)
    assert front["source"]["client"] == "claude-code"
    assert "supersedes" not in {key.lower() for key in front}
    assert re.fullmatch("[0-9a-f]{16}", front["id"])
    assert not flaw(page.encode(), path)
    note.write_text(f"---\n{own}\n---\nThe clock tower.\n")
    assert workspace.imports("claude-code", memory=True)["grown"] == [path]


def test_secrets_in_front_matter_are_masked(workspace, home):
    key = "sk-ant-" + "api03-" + "A1b2C3d4E5" * 9
    home.claude(workspace.root, "key.md", f"---\nname: the key {key}\n---\nIt is {key}.\n")
    workspace.imports("claude-code", memory=True)
    assert key not in texts(workspace)
    assert "masked" in texts(workspace)


@pytest.mark.parametrize(
    "head",
    [
        "---\nprivate: true\n---\n", "---\nname: a\nPRIVATE: yes\n---\n", "---\nprivate: [\n---\n",
        "---\nprivate: true\nprivate: false\n---\n",
    ],
)  # fmt: skip
def test_a_private_note_becomes_a_private_page(workspace, home, head):
    home.claude(workspace.root, "tea.md", f"{head}Prefers tea.\n")
    workspace.imports("claude-code", memory=True)
    assert is_private(workspace.page())


def test_only_notes_of_the_workspaces_folder_are_imported(workspace, home):
    """Of folders below it if a session names them: `notes-old` has the name of `notes/old`."""
    root = workspace.root
    home.claude(root, text="Mine.\n")
    home.claude(root / "part", text="Below.\n", cwd=root / "part")
    home.claude(f"{root}-old", text="Beside.\n", cwd=f"{root}-old")
    home.claude(root / "unsure", text="Unsure.\n")
    home.claude(root.parent, text="Above.\n", cwd=root.parent)
    found = workspace.imports("claude-code", memory=True)
    assert {word for word in ("Mine", "Below", "Beside", "Unsure", "Above") if word in texts(workspace)} == {
        "Mine",
        "Below",
    }
    [row] = found["skipped"]
    assert (row["count"], row["source"]) == (3, "other memory")
    assert "--all-projects" in row["why"]


def test_a_folder_that_two_projects_share_is_imported_for_neither(workspace, home, tmp_path):
    """Claude Code keeps both below one name; the notes of one would be shown to agents in the other."""
    other = Path(f"{workspace.root.parent}-notes")
    home.claude(workspace.root, cwd=workspace.root)
    assert name_of(other) == name_of(workspace.root)
    second = {"type": "user", "cwd": str(other)}
    home.write(home.folder / ".claude/projects" / name_of(other) / "other.jsonl", json.dumps(second) + "\n")
    assert workspace.imports("claude-code", memory=True)["new"] == []
    found = workspace.imports("claude-code", memory=True, all_projects=True)
    assert sorted(values(workspace.page())["project"]) == sorted([str(other), str(workspace.root)])
    assert len(found["new"]) == 1


def test_a_workspace_inside_keeps_its_notes_to_itself(workspace, home):
    root = workspace.root
    home.claude(root / "own", text="Inner.\n", cwd=root / "own")
    roots = (root, root / "own", root.parent)
    assert workspace.imports("claude-code", memory=True, workspaces=roots)["new"] == []
    named = workspace.imports("claude-code", memory=True, workspaces=roots, project=root / "own")
    assert len(named["new"]) == 1


def test_other_projects_are_imported_if_they_are_named(workspace, home, tmp_path):
    for name in ("one", "two"):
        home.claude(tmp_path / name, text=f"In {name}.\n", cwd=tmp_path / name)
    assert len(workspace.imports("claude-code", memory=True, project=tmp_path / "one")["new"]) == 1
    assert values(workspace.page())["project"] == str(tmp_path / "one")
    assert len(workspace.imports("claude-code", memory=True, all_projects=True)["new"]) == 1
    assert {values(text)["project"] for text in workspace.pages().values()} == {
        str(tmp_path / "one"),
        str(tmp_path / "two"),
    }


def test_a_long_path_is_recognised_by_its_beginning(workspace, home):
    """Claude Code cuts a name of more than 200 characters, and adds a hash."""
    folder = workspace.root / "/".join(["x" * 60] * 4)
    place = home.folder / ".claude/projects" / f"{name_of(folder)[:200]}-1k2j3h"
    home.write(place / "memory/MEMORY.md", "Deep.\n")
    home.write(place / "a.jsonl", json.dumps({"type": "user", "cwd": str(folder)}) + "\n")
    assert len(workspace.imports("claude-code", memory=True)["new"]) == 1
    assert values(workspace.page())["project"] == str(folder)


@pytest.mark.parametrize("place", ["link.md", "deep", "memory", "project"])
def test_a_link_out_of_the_clients_folder_is_not_followed(workspace, home, tmp_path, place):
    """An agent that writes there could else have any file recalled to every agent."""
    outside = home.write(tmp_path / "outside/memory/secret.md", "The bell tower.\n")
    project = home.claude(workspace.root).parent.parent
    link = {
        "link.md": project / "memory/link.md", "deep": project / "memory/deep", "memory": project / "memory",
        "project": project,
    }[place]  # fmt: skip
    if link.is_dir():
        shutil.rmtree(link)
    link.symlink_to({"link.md": outside, "project": outside.parent.parent}.get(place, outside.parent))
    found = workspace.imports("claude-code", memory=True)
    assert "bell tower" not in texts(workspace)
    if place != "deep":  # nothing is looked for behind it
        assert "link" in found["skipped"][0]["why"]


def test_a_note_that_is_deleted_there_is_gone_here(workspace, home):
    home.claude(workspace.root)
    note = home.claude(workspace.root, "queue.md", FACT)
    workspace.imports("claude-code", memory=True)
    note.unlink()
    found = workspace.imports("claude-code", memory=True, dry_run=True)
    assert len(found["gone"]) == 1
    assert len(workspace.pages()) == 2
    found = workspace.imports("claude-code", memory=True)
    assert [path.rpartition("/")[2][:10] for path in found["gone"]] == ["queue-left"]
    assert len(workspace.pages()) == 1
    home.claude(workspace.root, "queue.md", FACT)
    assert len(workspace.imports("claude-code", memory=True)["new"]) == 1


def test_a_note_that_is_emptied_is_gone_too(workspace, home):
    """What it held may have been taken back."""
    note = home.claude(workspace.root)
    workspace.imports("claude-code", memory=True)
    note.write_text("")
    assert len(workspace.imports("claude-code", memory=True)["gone"]) == 1
    assert workspace.pages() == {}


def test_a_note_that_cannot_be_read_now_is_not_gone(workspace, home):
    note = home.claude(workspace.root)
    workspace.imports("claude-code", memory=True)
    note.write_bytes("café".encode("utf-16"))
    found = workspace.imports("claude-code", memory=True)
    assert ([row["why"] for row in found["skipped"]], found["gone"]) == ([NOT_UTF8], [])
    assert len(workspace.pages()) == 1


@pytest.mark.parametrize("away", [".claude", ".claude/projects", "memory"])
def test_a_folder_that_is_away_deletes_nothing(workspace, home, away):
    note = home.claude(workspace.root)
    workspace.imports("claude-code", memory=True)
    folder = note.parent if away == "memory" else home.folder / away
    folder.rename(home.folder / "elsewhere")
    assert workspace.imports("claude-code", memory=True)["gone"] == []
    assert len(workspace.pages()) == 1


def test_many_notes_are_not_deleted_at_once(workspace, home):
    """An empty folder may be the place of a disk that is not mounted; the report names each page."""
    notes = [
        home.claude(workspace.root, f"{number}.md", f"# Note {number}\n") for number in range(run.GONE_PAGES)
    ]
    workspace.imports("claude-code", memory=True)
    for note in notes:
        note.unlink()
    found = workspace.imports("claude-code", memory=True)
    assert (found["gone"], len(found["left_alone"])) == ([], run.GONE_PAGES)
    assert {one["why"] for one in found["left_alone"]} == {run.MANY_GONE}
    assert (workspace.root / found["left_alone"][0]["path"]).exists()


def test_a_page_that_its_owner_has_changed_is_left_alone(workspace, home):
    note = home.claude(workspace.root)
    [path] = workspace.imports("claude-code", memory=True)["new"]
    with (workspace.root / path).open("a") as stream:
        stream.write("mine\n")
    note.unlink()
    found = workspace.imports("claude-code", memory=True)
    assert (found["gone"], [one["path"] for one in found["left_alone"]]) == ([], [path])


def test_sessions_and_notes_of_a_client_do_not_touch_each_other(workspace, home):
    home.claude(workspace.root)
    said = {"type": "user", "cwd": str(workspace.root), "message": {"content": "hello"}}
    home.write(
        home.folder / ".claude/projects" / name_of(workspace.root) / "s.jsonl", json.dumps(said) + "\n"
    )
    workspace.imports("claude-code", memory=True)
    workspace.imports("claude-code")
    workspace.imports("claude-code", memory=True)
    assert {path.partition("/")[0] for path in workspace.pages()} == {"claude-code", "claude-code-memory"}


CODEX = """\
# Task Group: Leaving the queue
scope: jobs
applies_to: cwd={root}; reuse_rule=only here

- Jobs are in Postgres.

# Task Group: Sails
applies_to: cwd=/elsewhere/boat; reuse_rule=only there

- The jib is torn.
"""


@pytest.fixture
def codex(home, workspace):
    """Codex's memory about the workspace and another project."""
    folder = home.folder / ".codex/memories"
    home.write(folder / "MEMORY.md", CODEX.format(root=workspace.root))
    home.write(folder / "memory_summary.md", "v1\n\nAda sails.\n")
    home.write(folder / "raw_memories.md", "# Raw Memories\n")
    for name, cwd in (
        ("2026-07-04T04-17-12-zymg-queue", workspace.root),
        ("2026-07-05T04-17-12-abcd-sail", "/x"),
    ):
        head = f"thread_id: 019e\nupdated_at: 2026-07-04T04:17:12+00:00\ncwd: {cwd}\n\n"
        home.write(folder / f"rollout_summaries/{name}.md", f"{head}# Summary\n\nWorked in {cwd}.\n")
    return folder


def test_codex_sections_and_summaries_are_taken_by_their_folder(workspace, codex):
    found = workspace.imports("codex", memory=True)
    assert sorted(path.removeprefix("memory/archives/codex-memory/")[:-10] for path in found["new"]) == [
        "2026/2026-07-04-summary",
        "task-group-leaving-the-queue",
    ]
    assert "Postgres" in texts(workspace)
    assert "jib" not in texts(workspace)
    assert found["skipped"][0]["count"] == 3
    workspace.imports("codex", memory=True, all_projects=True)
    assert {values(text)["project"] for text in workspace.pages().values()} == {
        str(workspace.root), "/elsewhere/boat", "/x", client_memory.SEVERAL_PROJECTS,
    }  # fmt: skip


def test_sections_with_alike_headings_are_pages_of_their_own(workspace, home):
    """A heading that looks like the number of another one takes no place."""
    heads = ("A", "A", "A (2)", "A")
    text = "".join(
        f"# Task Group: {head}\napplies_to: cwd={workspace.root}\n\nWord{number}.\n"
        for number, head in enumerate(heads)
    )
    home.write(home.folder / ".codex/memories/MEMORY.md", text)
    assert len(workspace.imports("codex", memory=True)["new"]) == len(heads)
    assert all(f"Word{number}." in texts(workspace) for number in range(len(heads)))


def test_a_file_of_too_many_sections_is_named_and_what_was_copied_stays(workspace, home, monkeypatch):
    text = "".join(f"# Task Group: T{n}\napplies_to: cwd={workspace.root}\n\nWord{n}.\n" for n in range(4))
    memory = home.write(home.folder / ".codex/memories/MEMORY.md", text)
    assert len(workspace.imports("codex", memory=True)["new"]) == 4
    monkeypatch.setattr(client_memory, "MAX_SECTIONS", 3)
    report = workspace.imports("codex", memory=True)
    assert (report["unchanged"], report["gone"]) == (3, [])
    [skipped] = report["skipped"]
    assert (skipped["source"], skipped["whole"]) == (str(memory), False)
    assert "divide or shorten" in skipped["why"]


def test_a_section_that_codex_takes_out_is_gone_here(workspace, codex):
    workspace.imports("codex", memory=True)
    memory = codex / "MEMORY.md"
    memory.write_text(memory.read_text().partition("# Task Group: Sails")[2])
    [gone] = workspace.imports("codex", memory=True)["gone"]
    assert "task-group-leaving-the-queue" in gone


def test_gemini_has_a_file_for_all_projects_and_a_folder_for_each(workspace, home):
    home.write(home.folder / ".gemini/GEMINI.md", "## Gemini Added Memories\n- Prefers tea.\n")
    home.gemini("notes", workspace.root, "Mine.\n")
    home.gemini("boat", "/elsewhere/boat", "The jib.\n")
    home.gemini("unknown", None, "Unsure.\n")
    home.write(home.folder / ".gemini/tmp/notes/memory/skills/x/SKILL.md", "A skill.\n")
    found = workspace.imports("gemini", memory=True)
    assert len(found["new"]) == 2
    assert {values(text)["project"] for text in workspace.pages().values()} == {
        client_memory.EVERY_PROJECT,
        str(workspace.root),
    }
    assert found["skipped"][0]["count"] == 2


def test_a_folder_of_geminis_that_is_named_by_a_hash_is_recognised(workspace, home):
    """It is the SHA-256 of the project's path."""
    import hashlib

    home.gemini(hashlib.sha256(str(workspace.root).encode()).hexdigest(), None)
    assert len(workspace.imports("gemini", memory=True)["new"]) == 1


def test_cursors_rules_are_those_of_the_workspace_and_its_folders(workspace, home):
    """Their patterns are no YAML, and become text; a workspace inside has its own."""
    root = workspace.root
    rule = "---\ndescription: Style\nglobs: **/*.ts, src/*\nalwaysApply: true\n---\n# Style\n\nTabs.\n"
    home.write(root / ".cursor/rules/style.mdc", rule)
    home.write(root / "part/.cursor/rules/api/names.mdc", "# Names\n\nPlural.\n")
    home.write(root / "inner/.cursor/rules/own.mdc", "# Own\n")
    home.write(root / "node_modules/x/.cursor/rules/foreign.mdc", "# Foreign\n")
    home.write(root / ".cursor/rules/README.txt", "no rule\n")
    found = workspace.imports("cursor", memory=True, workspaces=(root, root / "inner"))
    assert len(found["new"]) == 2
    pages = {values(text)["title"]: values(text) for text in workspace.pages().values()}
    assert pages["Style"]["globs"] == "**/*.ts, src/*"
    assert (pages["Style"]["alwaysApply"], pages["Style"]["project"]) == ("true", str(root))
    assert pages["Names"]["project"] == str(root / "part")
    shutil.rmtree(root / ".cursor/rules")
    assert len(workspace.imports("cursor", memory=True)["gone"]) == 1


def test_without_a_note_the_import_names_the_places(workspace, home):
    with pytest.raises(run.NothingToImportError, match=r"\.codex/memories"):
        workspace.imports("codex", memory=True)
    assert workspace.pages() == {}

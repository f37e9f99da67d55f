"""Import of the memory that OpenClaw and CowAgent keep."""

import shutil

import pytest

from memd.imports import jsonl, memory_folder
from memd.sources.privacy import is_private

FILES = {
    "MEMORY.md": "# What I know\n\nJobs are in Postgres.\n",
    "USER.md": "---\nname: Ada\n---\nPrefers tea.\n",
    "SOUL.md": "You are helpful.\n",
    "memory/2026-05-01.md": "# Daily Memory: 2026-05-01\n\n- left the queue\n",
    "memory/2026-05-02-standup.md": "talked\n",
    "memory/dreams/2026-05-01.md": "# A dream\n\nof queues\n",
    "memory/.dreams/state.md": "noise\n",
    "memory/notes.txt": "noise\n",
}


@pytest.fixture
def folder(tmp_path):
    for path, text in FILES.items():
        (tmp_path / "agent" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "agent" / path).write_text(text)
    return tmp_path / "agent"


@pytest.mark.parametrize("client", ["openclaw", "cowagent"])
def test_what_an_agent_remembers_becomes_notes_with_their_days(workspace, folder, client):
    found = workspace.imports(client, folder)
    names = sorted(path.removeprefix(f"memory/archives/{client}/")[:-10] for path in found["new"])
    assert names == [
        "2026/2026-05-01-a-dream", "2026/2026-05-01-daily-memory-2026-05-01",
        f"2026/2026-05-02-2026-05-02-standup-of-{client}", f"user-of-{client}", "what-i-know",
    ]  # fmt: skip
    text = "".join(workspace.pages().values())
    assert "noise" not in text
    assert "helpful" not in text
    assert "```\nname: Ada\n```\n\nPrefers tea.\n" in text
    assert f"client: {client}" in text


def test_a_memory_that_was_changed_is_brought_up_to_date(workspace, folder):
    workspace.imports("openclaw", folder)
    (folder / "MEMORY.md").write_text("# What I know\n\nJobs are in Redis.\n")
    found = workspace.imports("openclaw", folder)
    assert (len(found["grown"]), found["unchanged"]) == (1, 4)
    assert "Redis" in "".join(workspace.pages().values())


def test_the_memory_folder_itself_may_be_named(workspace, folder):
    assert len(workspace.imports("openclaw", folder / "memory")["new"]) == 5


@pytest.mark.parametrize(
    ("raw", "why"), [(b"c\0a\xe9", memory_folder.NOT_UTF8), (b"x" * 3_000_000, memory_folder.TOO_LARGE)]
)
def test_what_memd_could_not_read_is_named(workspace, folder, raw, why):
    (folder / "MEMORY.md").write_bytes(raw)
    found = workspace.imports("cowagent", folder)
    assert [row["why"] for row in found["skipped"]] == [why]
    assert len(found["new"]) == 4


def test_bytes_that_are_no_utf_8_cost_no_note(workspace, folder):
    (folder / "MEMORY.MD").write_bytes("# Café\n\nNear the bell tower.\n".encode("latin-1"))
    [row] = workspace.imports("cowagent", folder)["skipped"]
    assert (row["why"], row["whole"]) == (jsonl.NOT_UTF8, False)
    assert "# Caf\ufffd\n\nNear the bell tower." in "".join(workspace.pages().values())


@pytest.mark.parametrize(
    "place", ["memory/l.md", "memory/deep", "memory", "MEMORY.md", "memory/2026-05-01.md"]
)
def test_a_link_in_the_agents_folder_is_named_and_not_followed(workspace, folder, tmp_path, place):
    """Who writes there could else have any file of the user's recalled to every agent."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    for name in ("passwd", "deep/own.md"):
        (outside / name).write_text("the bell tower\n")
    link = folder / place
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(outside / ("deep" if place in {"memory", "memory/deep"} else "passwd"))
    found = workspace.imports("openclaw", folder)
    assert "bell tower" not in "".join(workspace.pages().values())
    if place != "memory/deep":  # nothing is looked for behind it
        assert [(row["source"], "link" in row["why"]) for row in found["skipped"]] == [(str(link), True)]


def test_a_folder_that_the_user_reaches_by_a_link_is_read(workspace, folder, tmp_path):
    """It is the user who named it; a hook names single files, too, which an agent can make links."""
    (tmp_path / "mine").symlink_to(folder)
    (tmp_path / "one.md").symlink_to(folder / "MEMORY.md")
    assert "link" in workspace.imports("openclaw", tmp_path / "one.md")["skipped"][0]["why"]
    assert len(workspace.imports("openclaw", tmp_path / "mine")["new"]) == 5


@pytest.mark.parametrize(
    "head", ["---\nprivate: true\n---\n", "---\nname: Ada\nprivate: yes\n---\n", "---\nprivate: [\n---\n"]
)
def test_what_is_private_in_an_agents_memory_stays_so(workspace, folder, head):
    """Its own front matter is shown as text, so the page has to say it itself."""
    (folder / "USER.md").write_text(f"{head}Prefers tea.\n")
    workspace.imports("cowagent", folder)
    kept = {"tea" in text: is_private(text) for text in workspace.pages().values()}
    assert kept == {True: True, False: False}


def test_a_page_that_was_imported_before_becomes_private_with_its_file(workspace, folder):
    workspace.imports("cowagent", folder)
    (folder / "USER.md").write_text("---\nprivate: true\n---\nPrefers tea.\n")
    [grown] = workspace.imports("cowagent", folder)["grown"]
    assert is_private((workspace.root / grown).read_text())

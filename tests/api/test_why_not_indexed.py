"""`why` for a note that the index does not have as it is. The sync stands still, so states hold."""

import asyncio

import msgspec
import pytest
from tests_support import Notes, context_of

from memd.api import params
from memd.api.get import below
from memd.api.why import _NOT_INDEXED, why
from memd.config import WorkspaceConfig
from memd.records import Skipped
from memd.rpc.context import Call
from memd.workspace.open import OpenWorkspace, visible_to_agents
from memd.workspace.sync import WorkspaceSync
from memd.workspace.workspaces import Workspaces

CONFIG = WorkspaceConfig(agents_ignore=("diary.md",))


class Room:
    """A workspace whose sync is not running."""

    def __init__(self, notes: Notes, folder) -> None:
        self.notes = notes
        (notes.root / "memory").mkdir()
        (notes.root / "memory" / "config.toml").write_text("")
        self.workspaces = Workspaces(folder / "all", folder / "user.toml")
        sync = WorkspaceSync(context_of(notes, threads=self.workspaces.threads))
        self.opened = OpenWorkspace(
            sync.place, CONFIG, notes.index, sync, self.workspaces.threads, notes.embedder.tokenizer, None,
            visible_to_agents(CONFIG),
        )  # fmt: skip

    def why(self, path: str, query: str = "heron", **fields) -> dict:
        question = params.convert({"path": path, "query": query, **fields}, params.WhyParams)
        call = Call(None, {}, None, lambda *_: None, lambda _: None, lambda: False)
        return msgspec.to_builtins(asyncio.run(why(self.workspaces, self.opened, question, call)))


@pytest.fixture
def room(notes, tmp_path):
    room = Room(notes, tmp_path)
    yield room
    asyncio.run(room.workspaces.close())


def reason(answer: dict) -> tuple[str, str | None]:
    return answer["stage"], answer["facts"].get("reason")


def test_before_the_first_scan_is_done_a_note_is_not_indexed_yet(room):
    room.notes.write("a.md", "heron\n")
    answer = room.why("a.md")
    assert reason(answer) == ("not-indexed", "scanning")
    assert "memctl index" in answer["advice"]


def test_a_note_that_waits_in_line_says_so(room):
    room.notes.write("a.md", "heron\n")
    room.opened.sync.index_loop.hint(["a.md"])
    answer = room.why("a.md")
    assert reason(answer) == ("not-indexed", "waiting")
    assert "memctl sync" in answer["advice"]


def test_a_note_that_no_event_told_of_says_so(room):
    room.opened.sync.scanner.last = 1.0
    room.opened.sync.scanner._schedule.since = None
    room.notes.write("a.md", "heron\n")
    assert reason(room.why("a.md")) == ("not-indexed", "unnoticed")
    room.opened.sync.scanner.ask_folder("x/")
    assert reason(room.why("a.md")) == ("not-indexed", "scanning")


def test_a_note_that_memd_failed_on_says_so(room):
    room.opened.sync.scanner.note_skipped([], [Skipped("a.md", "failed")])
    room.notes.write("a.md", "heron\n")
    assert reason(room.why("a.md")) == ("not-indexed", "failed")


def test_a_note_that_changed_since_is_not_indexed_as_it_is(room):
    room.notes.save({"a.md": "pond\n", "b.md": "heron\n"})
    assert reason(room.why("a.md")) == ("unmatched", None)
    room.notes.write("a.md", "heron\n")
    assert reason(room.why("a.md")) == ("not-indexed", "changed")


def test_what_is_returned_is_returned_whatever_changed_since(room):
    room.notes.save({"a.md": "heron\n"})
    room.notes.write("a.md", "heron weir\n")
    assert reason(room.why("a.md")) == ("returned", None)


def test_a_note_that_was_indexed_is_gone_and_another_is_missing(room):
    room.notes.save({"a.md": "heron\n", "Deep/Note.md": "heron\n"})
    (room.notes.root / "a.md").unlink()
    assert reason(room.why("a.md")) == ("gone", None)
    room.notes.indexer.apply(["a.md"])
    assert reason(room.why("a.md")) == ("gone", None)
    answer = room.why("note.markdown")
    assert (answer["stage"], answer["facts"]["close"]) == ("missing", ["Deep/Note.md"])
    assert "Deep/Note.md" in answer["advice"]


def test_an_indexed_note_that_is_ignored_by_now_is_no_source(room):
    room.notes.save({"a.md": "pond\n"})
    room.notes.write(".gitignore", "# x\na.md\n")
    answer = room.why("a.md")
    assert reason(answer) == ("not-a-source", "ignored")
    assert answer["facts"]["rule"] == ".gitignore:2: a.md"
    assert "memory/.memdignore" in answer["advice"]


def test_without_its_folder_what_is_indexed_still_answers(room):
    room.notes.save({"a.md": "heron\n", "b.md": "pond\n"})
    room.notes.root.rename(room.notes.root.with_name("away"))
    assert room.why("a.md")["stage"] == "returned"
    assert room.why("b.md")["stage"] == "unmatched"
    answer = room.why("c.md")
    assert (answer["stage"], answer["degraded"]) == ("root-missing", ["root-missing"])
    room.notes.root.with_name("away").rename(room.notes.root)


@pytest.mark.parametrize("path", ["../x.md", "/etc/passwd", "..", "a/../../x.md", "/"])
def test_what_is_outside_of_the_workspace_is_not_looked_at(room, path):
    """However it is written; whether it exists is not told."""
    answer = room.why(path)
    assert (answer["stage"], answer["facts"]) == ("outside", {})


def test_paths_may_be_absolute_relative_or_through_a_link(room, tmp_path):
    room.notes.save({"a/b.md": "heron\n"})
    (tmp_path / "link").symlink_to(room.notes.root)
    for path in (
        "a/b.md",
        "./a//b.md",
        "a/x/../b.md",
        f"{room.notes.root}/a/b.md",
        f"{tmp_path}/link/a/b.md",
    ):
        answer = room.why(path)
        assert (answer["stage"], answer["path"]) == ("returned", "a/b.md"), path
    assert below(room.notes.root, "a\0b") == "a\0b"
    assert room.why("a\0b.md")["stage"] == "missing"


def test_every_reason_has_its_words():
    assert {"waiting", "scanning", "unnoticed", "changed", "failed"} == set(_NOT_INDEXED)


@pytest.mark.parametrize("name", ["pay.md", "diary.md"])
def test_what_is_kept_from_agents_is_missing_to_them(room, name):
    """Indexed, changed, not indexed yet or gone: all of it is what a name is that was never there."""
    text = "---\nprivate: true\n---\nA heron.\n" if name == "pay.md" else "A heron.\n"
    told = [room.why(name, agent=True)]
    room.notes.write(name, text)
    told.append(room.why(name, agent=True))
    room.notes.save({name: text})
    assert room.why(name)["stage"] == "returned"
    told.append(room.why(name, agent=True))
    room.notes.write(name, text + "It flew.\n")
    told.append(room.why(name, agent=True))
    room.notes.remove(name)
    told.append(room.why(name, agent=True))
    assert {(one["stage"], one["text"]) for one in told} == {("missing", told[0]["text"])}

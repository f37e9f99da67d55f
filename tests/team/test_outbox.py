"""The outbox of an index: what a commit notes, and what an acknowledgement takes off."""

import pytest
from tests_support import Notes, OtherHashEmbedder

from memd.index import outbox
from memd.index.outbox import KEPT, TO_REMOVE, TO_SEND, SentSource


def rows(notes: Notes) -> dict[str, tuple[int, int]]:
    """Return path → (due, sent)."""
    return {
        path: (due, sent) for path, due, sent in notes.index.writer.run("SELECT path, due, sent FROM outbox")
    }


def due(notes: Notes) -> list[SentSource]:
    return [SentSource(path, revision) for path, revision, _ in notes.index.writer.run(outbox.DUE, (100,))]


def publish(notes: Notes) -> None:
    with notes.index.writer.transaction():
        notes.index.writer.outbox.open("terms")
        notes.index.writer.outbox.note_all()


def acknowledge(notes: Notes, *paths: str) -> None:
    """Have the store acknowledge all that waits, or the sources at *paths*."""
    box = notes.index.writer.outbox
    sent = [one for one in due(notes) if not paths or one.path in paths]
    with notes.index.writer.transaction():
        box.begin(sent)
        gone = [one for one in sent if rows(notes)[one.path][0] == TO_REMOVE]
        box.acknowledge([one for one in sent if one not in gone], gone)


STEPS = {
    "save": lambda notes, path, text="one": notes.save({path: text}),
    "hide": lambda notes, path: notes.save({path: "---\nprivate: true\n---\none"}),
    "remove": lambda notes, path: notes.remove(path),
    "publish": publish,
    "acknowledge": acknowledge,
}


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ("save a; save b; remove b", {}),  # nothing is published
        # Not even its path is told to a store that never had it.
        ("save a; publish; acknowledge; hide a; hide b", {"a": (TO_REMOVE, 1)}),
        ("publish; save a; remove a", {}),  # it was never sent
        ("save a; publish; acknowledge; remove a; save a", {"a": (TO_SEND, 1)}),
    ],
)
def test_what_is_left_to_be_sent(notes, steps, left):
    for step in steps.split("; "):
        name, *path = step.split()
        STEPS[name](notes, *(f"{one}.md" for one in path))
    assert rows(notes) == {f"{path}.md": row for path, row in left.items()}


def test_a_commit_notes_its_sources_once_each(notes):
    publish(notes)
    notes.save({"a.md": "one"}, embed=False)
    [first] = due(notes)
    notes.save({"a.md": "two"}, embed=False)
    [second] = due(notes)
    assert (first.path, second.path) == ("a.md", "a.md")
    assert second.revision > first.revision
    assert rows(notes) == {"a.md": (TO_SEND, 0)}


def test_a_commit_that_is_rolled_back_notes_nothing(notes):
    publish(notes)
    notes.save({"a.md": "one"})
    before = due(notes)

    def change() -> None:
        with notes.index.changes() as changes:
            changes.remove("a.md", 1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    assert due(notes) == before


def test_the_newest_goes_first_and_a_removal_before_all(notes):
    """A fresh save does not wait behind a whole workspace, nor does a note that must leave the store."""
    notes.save({"a.md": "one", "b.md": "two", "c.md": "three"})
    publish(notes)
    acknowledge(notes)
    notes.save({"b.md": "two, again"}, embed=False)
    notes.remove("a.md")
    notes.save({"c.md": "three, again"}, embed=False)
    assert [one.path for one in due(notes)] == ["a.md", "c.md", "b.md"]


def test_vectors_follow_when_a_source_has_all_of_them(notes):
    publish(notes)
    notes.save({"a.md": "# One\n\n" + "first " * 300 + "\n\n# Two\n\n" + "second " * 300}, embed=False)
    acknowledge(notes)
    waiting = notes.index.pending(100)
    assert len(waiting) > 2
    first = dict(list(waiting.items())[:1])
    notes.embed_some(first)
    assert rows(notes) == {"a.md": (KEPT, 1)}
    notes.embed()
    assert rows(notes) == {"a.md": (TO_SEND, 1)}


def test_vectors_of_a_model_that_does_not_answer_yet_are_not_noted(notes):
    publish(notes)
    notes.save({"a.md": "one"})
    acknowledge(notes)
    notes.switch(OtherHashEmbedder())
    notes.embed()
    assert rows(notes) == {"a.md": (KEPT, 1)}


def test_an_acknowledgement_of_an_older_state_leaves_the_newer_one_due(notes):
    """A note may be saved while its last state is being sent."""
    publish(notes)
    notes.save({"a.md": "one"}, embed=False)
    sent = due(notes)
    box = notes.index.writer.outbox
    with notes.index.writer.transaction():
        assert box.begin(sent) == set(sent)
    notes.save({"a.md": "two"}, embed=False)
    with notes.index.writer.transaction():
        assert box.begin(sent) == set()
        box.acknowledge(sent, [])
    assert rows(notes) == {"a.md": (TO_SEND, 1)}


def test_the_outbox_survives_a_crash(notes, tmp_path):
    publish(notes)
    notes.save({"a.md": "one"}, embed=False)
    [before] = due(notes)
    (tmp_path / "later").mkdir()
    after = notes.crashed(tmp_path / "later")
    assert due(after) == [before]
    after.save({"b.md": "two"}, embed=False)
    assert max(one.revision for one in due(after)) > before.revision
    after.index.close()


def test_a_new_index_counts_on_above_an_old_one(tmp_path):
    """Otherwise the store would take what it has for newer."""
    (tmp_path / "old").mkdir()
    old = Notes(tmp_path / "old")
    publish(old)
    old.save({f"{number}.md": "text" for number in range(50)})
    highest = max(one.revision for one in due(old))
    old.index.close()
    (tmp_path / "new").mkdir()
    new = Notes(tmp_path / "new")
    publish(new)
    new.save({"a.md": "text"})
    assert due(new)[0].revision > highest
    with new.index.writer.transaction():
        new.index.writer.outbox.count_from(highest + 1000)
        new.index.writer.outbox.note("a.md")
    assert due(new)[0].revision > highest + 1000
    new.index.close()


def test_what_is_published_no_more_leaves_no_row(notes):
    notes.save({"a.md": "one"})
    publish(notes)
    with notes.index.writer.transaction():
        notes.index.writer.outbox.close()
    notes.save({"b.md": "two"})
    assert rows(notes) == {}
    notes.reopen()
    assert not notes.index.writer.outbox.is_open

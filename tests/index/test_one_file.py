"""One file's trouble is that file's: whatever a step with it raises, all others are indexed."""

import pytest
from structlog.testing import capture_logs
from tests_support import LONG, Notes

from memd.index import indexer as steps
from memd.index.transaction import Transaction
from memd.index.writer import Writer
from memd.records import Skipped
from memd.sources.scan import stamp_of

PARAGRAPH = "\n\n".join(f"## Part {number}\n\nheron {'weir ' * 90}" for number in range(12))
SOURCES = {
    "plain.md": "heron\n", "empty heading.md": "#\n\nheron\n", "long.md": f"{PARAGRAPH}\n",
    "front.md": "---\ntitle: heron\n---\nheron\n", "table.md": "| heron |\n| --- |\n| weir |\n",
    "fence.md": "```\nheron\n```\n", "2026-05-01.md": "heron\n", "鷺.md": "鷺は heron\n",
    "a/b/deep.md": "heron\n", "links.md": "[[plain]] heron\n",
}  # fmt: skip
RAISED = [
    OverflowError("int too large"), ValueError("no"), KeyError("no"), RecursionError("no"),
    OSError(5, "no"), MemoryError(),
]  # fmt: skip
STEPS = {
    "read": (steps, "read_source", lambda args: args[1]),
    "sift": (Writer, "stamp", lambda args: args[1]),
    "prepare": (steps, "prepare", lambda args: args[0].path),
    "stage": (steps.Index, "stage", lambda args: args[1].source.path),
    "put": (Transaction, "put", lambda args: args[1].source.path),
}
NAMED = {
    "read": "reading", "sift": "comparing", "prepare": "parsing", "stage": "storing its chunks",
    "put": "storing",
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_file_at_fault_is_set_aside_and_all_others_are_indexed(tmp_path, monkeypatch, step):
    """Of each step each source and each error; in the long form each source with each error."""
    owner, name, path_of = STEPS[step]
    works = getattr(owner, name)
    culprit, error = "", RAISED[0]

    def raises(*args, **settings):
        if path_of(args) == culprit:
            raise error
        return works(*args, **settings)

    monkeypatch.setattr(owner, name, raises)
    monkeypatch.setattr(steps, "STAGED_CHUNKS", 4)
    notes = Notes(tmp_path)
    at_fault = [(path, error) for path in SOURCES for error in RAISED]
    if step == "stage":  # others have no chunks to store ahead
        at_fault = [(path, error) for path, error in at_fault if path == "long.md"]
    elif not LONG:
        shift = list(STEPS).index(step)
        at_fault = [(path, RAISED[(place + shift) % len(RAISED)]) for place, path in enumerate(SOURCES)]
    for number, (path, error) in enumerate(at_fault):
        culprit = path
        texts = {one: f"{text}\nword{number}\n" for one, text in SOURCES.items()}
        for one, text in texts.items():
            notes.write(one, text)
        with capture_logs() as logged:
            done = notes.indexer.apply(list(texts), budget_s=60)
        assert {line["event"] for line in logged} <= {"note_failed", "commit_failed"}
        assert [(one.path, one.reason) for one in done.skipped] == [(path, "failed")]
        assert done.skipped[0].detail == f"{NAMED[step]}: {type(error).__name__}"
        assert set(notes.found(f"word{number}", limit=100)) == SOURCES.keys() - {path}
        assert done.handled == len(texts)
        culprit = ""
        notes.save({path: texts[path] + "mended\n"})
        assert path in notes.found(f"word{number}", limit=100)
    assert notes.closed() == []


def test_a_file_that_is_no_text_is_read_once_and_was_never_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "RACY_NS", 0)
    notes, skipped = Notes(tmp_path), [Skipped("b.md", "binary")]
    notes.write("a.md", "heron\n")
    (notes.root / "b.md").write_bytes(b"heron\0")
    done = notes.indexer.apply(notes.compared().differing)
    assert (done.indexed, done.removed, done.skipped) == (["a.md"], [], skipped)
    assert (notes.compared().differing, notes.compared().skipped) == ([], skipped)
    notes.write("b.md", "heron, too\n")
    notes.indexer.apply(notes.compared().differing)
    assert set(notes.found("heron")) == {"a.md", "b.md"}
    notes.index.close()


@pytest.mark.parametrize("inode", [1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("time_ns", [-1, (1 << 63) + 5, -(1 << 63) - 5])
def test_numbers_of_any_file_system_are_kept_and_compared(tmp_path, inode, time_ns):
    """Inodes above 2^63, and times that no file system should give, fit into SQLite and come back equal."""

    class Status:
        st_mtime_ns, st_ctime_ns, st_size, st_ino = time_ns, time_ns, 7, inode

    notes = Notes(tmp_path)
    notes.save({"a.md": "heron\n"})
    stamp = stamp_of(Status)
    with notes.index.writer.transaction():
        notes.index.writer.put_stamp("a.md", stamp)
    assert notes.index.writer.stamp("a.md")[0] == stamp == stamp_of(Status)
    notes.index.close()

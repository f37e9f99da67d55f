"""A second machine that has the notes and their sidecars embeds nothing, and has only right vectors."""

import math
import shutil
import time
from pathlib import Path

import pytest
from tests_support import LatinEmbedder, Notes, WordHashEmbedder, flip

from memd.index import sidecars, source_rows
from memd.index.sidecars import KEPT_S, SidecarFolder

TEXTS = {f"{number}.md": f"# Note {number}\n\nword{number} and more\n" for number in range(12)}


class Machine:
    """Notes with their sidecars, as one daemon keeps them."""

    def __init__(self, folder: Path, embedder: WordHashEmbedder | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.notes = Notes(folder, embedder=embedder)
        (self.notes.root / "memory").mkdir(exist_ok=True)
        self.folder = SidecarFolder(self.notes.root)
        self.tried: set[str] = set()
        self.done: set[bytes] = set()

    def adopt(self) -> int:
        """Take what is there; return how many sources in all."""
        return sum(iter(self.adopt_some, 0))

    def adopt_some(self, limit: int = 32) -> int:
        """Take what one commit takes; return of how many sources."""
        waiting = sidecars.waiting_sources(self.notes.index, limit)
        sources, vectors = sidecars.adoptable(
            self.folder, waiting, **self.model, tried=self.tried, limit=limit
        )
        if sources:
            self.notes.indexer.embed(vectors, model_id=self.model["model_id"])
        return sources

    def export(self) -> int:
        """Leave what is missing; return how many sidecars were written."""
        before = self.folder.written
        while sources := sidecars.exportable(self.notes.index, **self.model, done=self.done):
            if not sidecars.export_sidecars(self.folder, sources, **self.model, done=self.done):
                break
        return self.folder.written - before

    def prune(self, now_s: float) -> int | None:
        """Remove what nobody needs; return how many, or None if that is not known yet."""
        needed = sidecars.needed_keys(self.notes.index, **self.model)
        return None if needed is None else self.folder.prune(needed, **self.model, now_s=now_s)

    @property
    def model(self) -> dict:
        return {"model_id": self.notes.embedder.model_id, "dim": self.notes.embedder.dim}

    @property
    def files(self) -> list[Path]:
        return sorted((self.notes.root / "memory" / "index" / "vectors").glob("*.vec"))


@pytest.fixture
def machines(tmp_path: Path):
    """Return a maker of machines, each beginning with the files of another."""
    made = []

    def machine(like: Machine | None = None, embedder: WordHashEmbedder | None = None) -> Machine:
        folder = tmp_path / str(len(made))
        if like is not None:
            shutil.copytree(like.notes.root, folder / "notes")
        made.append(Machine(folder, embedder))
        return made[-1]

    yield machine
    for one in made:
        one.notes.index.close()


@pytest.fixture
def first(machines) -> Machine:
    """A machine that has embedded all and left it."""
    machine = machines()
    machine.notes.save(TEXTS)
    assert machine.export() == len(TEXTS)
    return machine


def test_the_second_machine_embeds_nothing(machines, first):
    second = machines(first)
    second.notes.save(TEXTS, embed=False)
    assert second.adopt() == len(TEXTS)
    assert second.notes.index.unembedded_count() == 0
    for number in range(12):
        there, here = (
            [
                (hit.source.path, hit.candidate.vector_score)
                for hit in notes.search(f"word{number}", mode="vector").hits
            ]
            for notes in (first.notes, second.notes)
        )
        assert here
        assert here == there
    assert second.export() == 0
    assert not second.folder.ignored


def test_what_has_no_sidecar_is_left_to_the_model(machines, first):
    second = machines(first)
    second.notes.save(TEXTS | {"3.md": "# Note 3\n\nedited here\n", "new.md": "a new note\n"}, embed=False)
    assert second.adopt() == len(TEXTS) - 1
    assert sorted(second.notes.index.pending(10).values()) == ["# Note 3\n\nedited here", "a new note"]
    second.notes.embed()
    assert second.export() == 2


def test_a_note_that_arrives_with_its_sidecar_is_not_embedded(machines, first):
    """A pull brings both while memd runs."""
    second = machines(first)
    second.notes.save(TEXTS, embed=False)
    second.adopt()
    first.notes.save({"late.md": "a late note\n"})
    first.export()
    shutil.copytree(first.notes.root, second.notes.root, dirs_exist_ok=True)
    second.notes.save({"late.md": "a late note\n"}, embed=False)
    assert second.adopt() == 1
    assert second.notes.index.unembedded_count() == 0


def test_a_commit_takes_a_limited_number_of_sources(machines, first):
    """The writing thread is not held for all of them at once."""
    second = machines(first)
    second.notes.save(TEXTS, embed=False)
    assert [second.adopt_some(limit=5) for _ in range(4)] == [5, 5, 2, 0]


def test_damaged_and_foreign_sidecars_are_embedded_anew_and_replaced(machines, first):
    second = machines(first)
    for file in second.files[:4]:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    second.notes.save(TEXTS, embed=False)
    second.notes.embedder.model_id = "another"
    second.notes.index.begin_model("another", 64)
    assert second.adopt() == 0
    second.notes.embedder.model_id = "word-hash"
    second.notes.index.begin_model("word-hash", 64)
    assert second.adopt() == 8
    assert second.adopt() == 0
    assert second.folder.ignored.total() == 4
    second.notes.embed()
    assert second.export() == 4
    third = machines(second)
    third.notes.save(TEXTS, embed=False)
    assert third.adopt() == len(TEXTS)


def test_half_embedded_sources_are_not_left(first):
    long = "\n\n".join(f"## Part {part}\n\n" + f"word{part} " * 150 for part in range(6))
    first.notes.save({"long.md": long}, embed=False)
    index = first.notes.index
    batch = index.pending(3)
    vectors = first.notes.embedder.embed_documents(list(batch.values()))
    first.notes.indexer.embed(dict(zip(batch, vectors, strict=True)), model_id="word-hash")
    assert index.unembedded_count() > 0
    assert first.export() == 0
    first.notes.embed()
    assert first.export() == 1


def test_a_row_that_the_disk_damaged_does_not_travel(first):
    """No sidecar is written with it: it stays on this machine, which notices it at its next start."""
    for file in first.files:
        file.unlink()
    rows = first.notes.index.snapshot.rows
    [matrix] = first.notes.state.glob("vectors.*.f32")
    flip(matrix, 5 * rows.dim * 4)
    first.done.clear()
    assert first.export() == len(TEXTS) - 1


def test_a_model_that_is_being_built_leaves_nothing(first):
    """Its vectors do not answer yet; the old model's sidecars stay."""
    first.notes.save({"new.md": "a new note\n"})
    first.notes.index.begin_model("another", 64)
    first.notes.embedder.model_id = "another"
    first.notes.embed()
    assert first.export() == 0
    assert first.notes.index.finish_building(frozenset())
    first.done.clear()
    assert first.export() == len(TEXTS) + 1
    assert len(first.files) == 2 * len(TEXTS) + 1


def test_a_model_that_is_built_takes_its_sidecars_too(machines, first):
    index = first.notes.index
    first.notes.embedder.model_id = "another"
    index.begin_model("another", 64)
    first.notes.embed()
    assert index.finish_building(frozenset())
    first.notes.embedder.model_id = "word-hash"
    index.begin_model("word-hash", 64)
    assert first.adopt() == len(TEXTS)
    assert index.finish_building(frozenset())
    assert first.notes.found("word7", mode="vector")[0] == "7.md"


def test_a_folder_that_cannot_be_used_is_no_obstacle(machines, first, tmp_path):
    second = machines(first)
    vectors = second.notes.root / "memory" / "index" / "vectors"
    vectors.rename(tmp_path / "elsewhere")
    vectors.symlink_to(tmp_path / "elsewhere")
    second.notes.save(TEXTS, embed=False)
    assert second.adopt() == 0
    second.notes.embed()
    assert second.export() == 0
    assert set(second.folder.ignored) == {"unsafe", "unwritable"}
    vectors.unlink()
    assert second.export() == len(TEXTS)


def test_empty_notes_have_no_sidecar(machines):
    machine = machines()
    machine.notes.save({"empty.md": "", "blank.md": "\n\n"})
    assert machine.export() == 0
    assert machine.files == []


def test_files_of_the_same_text_share_one_sidecar(machines):
    machine = machines()
    machine.notes.save({"a.md": "one text\n", "b.md": "one text\n"})
    assert machine.export() == 1
    second = machines(machine)
    second.notes.save({"a.md": "one text\n", "b.md": "one text\n"}, embed=False)
    second.adopt()
    assert second.notes.index.unembedded_count() == 0


def test_sidecars_that_nobody_needs_are_pruned(first):
    """Of edited notes and of purged ones, a day later; not of notes that are gone for a while."""
    notes = first.notes
    notes.save({"0.md": "edited\n"})
    first.export()
    (notes.root / "1.md").unlink()
    notes.indexer.apply(["1.md"], budget_s=60)
    later = time.time() + KEPT_S + 60
    assert first.prune(later) is None  # not complete yet
    notes.index.writer.store("complete", 1)
    assert first.prune(time.time()) == 0
    assert first.prune(later) == 1
    assert notes.index.purge(None, 10) == 1
    assert first.prune(later) == 1
    assert len(first.files) == len(TEXTS) - 1
    assert first.prune(later) == 0


def test_what_was_forgotten_leaves_no_sidecar(first):
    notes = first.notes
    notes.index.writer.store("complete", 1)
    (notes.root / "1.md").unlink()
    notes.indexer.apply(["1.md"], budget_s=60)
    notes.index.purge(None, 10)
    assert first.prune(math.inf) == 1
    assert len(first.files) == len(TEXTS) - 1


MIXED = {
    "long.md": f"# Heron\n\n{'The heron by the weir. ' * 40}\n\n# 鹭\n\n{'鹭在堰边站着等鱼。' * 40}\n",
    "zh.md": "发动机要在星期四修理好\n",
}


def test_a_note_that_the_model_reads_in_part_travels_with_what_it_reads(machines):
    first = machines(embedder=LatinEmbedder())
    first.notes.save(MIXED)
    assert first.notes.index.unembedded_count("script") == 3
    assert first.export() == 1
    first.notes.index.writer.set("complete", 1)
    assert first.prune(math.inf) == 0
    second = machines(first, LatinEmbedder())
    second.notes.save(MIXED, embed=False)
    assert second.notes.index.unembedded_count() == 1
    assert second.adopt() == 1
    assert (second.notes.index.unembedded_count(), second.notes.index.unembedded_count("script")) == (0, 3)


def test_a_long_note_travels_with_the_chunks_that_are_embedded(machines, monkeypatch):
    monkeypatch.setattr(source_rows, "EMBEDDED_CHUNKS", 1)
    note = {
        "long.md": "".join(
            f"# {word}\n\n{f'The {word} by the weir. ' * 40}\n\n" for word in ("heron", "otter")
        )
    }
    first = machines()
    first.notes.save(note)
    assert first.notes.index.unembedded_count("long") == 1
    assert first.export() == 1
    second = machines(first)
    second.notes.save(note, embed=False)
    assert second.adopt() == 1
    assert (second.notes.index.unembedded_count(), second.notes.index.unembedded_count("long")) == (0, 1)

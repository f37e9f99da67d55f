"""The temporary index: begun as a copy of the workspace's own where that lies still, else made of nothing."""

import os
import shutil
import time

import pytest

from memd import registry
from memd.api.params import SearchParams
from memd.embedding.onnx import OnnxEmbedder
from memd.errors import ConfigError, WorkspaceError
from memd.eval.temporary_index import registered, temporary_index
from memd.registry import Registry

TEXTS = {
    "tea.md": "# Favourite drinks\n\nAda has smoked tea in a cup.\n",
    "queue.md": "# Queues\n\nWe left Kafka for tables in Postgres.\n",
}


@pytest.fixture
def notes(tmp_path):
    """A registered workspace whose own index is complete and has lain still for a minute."""
    root, state = tmp_path / "notes", tmp_path / "state"
    for folder in (root, state):
        folder.mkdir(mode=0o700)
    registry.create(registry.workspace_at(root, tmp_path / "state"), force=False)
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    Registry(state).write([root])
    found = registered(str(root / "sub"), state, tmp_path / "none.toml")
    made(found, tmp_path / "first")
    shutil.copytree(tmp_path / "first" / found.place.index_dir.name, found.place.index_dir)
    lie_still(found)
    return found


def lie_still(notes):
    """Make the workspace's own index look as if nobody had written to it for a minute."""
    for path in notes.place.index_dir.iterdir():
        os.utime(path, (time.time() - 60, time.time() - 60))


def made(notes, folder, query="smoked tea"):
    """Make a temporary index; return (chunks that had no vector, paths of a search's hits)."""
    waiting = []
    with temporary_index(notes, notes.place.root, folder) as index:
        index.update(notes.rules, lambda *_: None, lambda count, _: waiting.append(count))
        answer = index.answer(SearchParams(query=query))
        assert not index.index.unembedded_count()
        return waiting[0], [hit.source.path for hit in answer.hits]


def test_what_lies_still_is_copied_and_not_embedded_again(notes, tmp_path):
    before = {path: (path.read_bytes(), path.stat()) for path in notes.place.index_dir.iterdir()}
    assert made(notes, tmp_path / "copy")[0] == 0
    after = {path: (path.read_bytes(), path.stat()) for path in notes.place.index_dir.iterdir()}
    assert {path: (data, status.st_mtime_ns) for path, (data, status) in after.items()} == {
        path: (data, status.st_mtime_ns) for path, (data, status) in before.items()
    }


def test_only_what_was_saved_since_is_embedded(notes, tmp_path):
    (notes.place.root / "new.md").write_text("A kettle of smoked tea.\n")
    (notes.place.root / "tea.md").unlink()
    waiting, found = made(notes, tmp_path / "copy")
    assert waiting == 1
    assert found[0] == "new.md"
    assert "tea.md" not in found


def test_what_embedding_will_take_is_measured_on_these_notes(notes, tmp_path, monkeypatch):
    embedded, said, usual = [], [], OnnxEmbedder.embed_documents

    def embed(self, texts):
        embedded.extend(texts)
        return usual(self, texts)

    monkeypatch.setattr(OnnxEmbedder, "embed_documents", embed)
    for number in range(40):
        (notes.place.root / f"{number}.md").write_text(f"# Number {number}\n\n{'heron ' * number}\n")
    with temporary_index(notes, notes.place.root, tmp_path / "copy", fresh=True) as index:
        index.update(notes.rules, lambda *_: None, lambda *told: said.append((*told, len(embedded))))
    [(waiting, took_s, before)] = said
    assert waiting == len(embedded) == len(set(embedded)) > before > 0
    assert took_s > 0


def test_an_index_that_is_being_written_is_not_copied(notes, tmp_path):
    """It might be torn; all is made anew, with the same answer."""
    newest = notes.place.index_dir / "index.db"
    os.utime(newest)
    waiting, found = made(notes, tmp_path / "anew")
    assert waiting == len(TEXTS)
    assert found[0] == "tea.md"


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_an_index_that_cannot_be_read_is_not_used(notes, tmp_path, damage):
    database = notes.place.index_dir / "index.db"
    database.write_bytes(database.read_bytes()[:8192] if damage == "cut" else b"none of ours")
    lie_still(notes)
    assert made(notes, tmp_path / "anew") == (len(TEXTS), ["tea.md", "queue.md"])


def test_without_an_index_of_its_own_all_is_made(notes, tmp_path):
    shutil.rmtree(notes.place.index_dir)
    assert made(notes, tmp_path / "anew")[0] == len(TEXTS)


def test_a_folder_that_is_not_registered_is_refused(notes, tmp_path):
    """Only what the user has made a workspace is read."""
    with pytest.raises(WorkspaceError, match="memctl init"):
        registered(str(tmp_path), tmp_path / "state", tmp_path / "none.toml")


def test_a_model_that_the_user_does_not_allow_is_refused(notes, tmp_path):
    notes.place.config_path.write_text('model = "/somewhere/else"\n')
    with pytest.raises(ConfigError, match="/somewhere/else"):
        registered(str(notes.place.root), tmp_path / "state", tmp_path / "none.toml")

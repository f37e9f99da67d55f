"""Vectors in a store: they follow the words, they are of one model, and another one replaces them."""

import threading
from contextlib import closing, contextmanager

import pytest
from daemon_process import until
from tests_support import LatinEmbedder, Notes, OtherHashEmbedder, WordHashEmbedder

from memd.entries.secrets import replacements
from memd.index.visibility import Visibility
from memd.sources.ignore import Patterns, of_config
from memd.stores.identity import Identity
from memd.stores.publisher import Publisher
from memd.stores.store import PublishedWorkspace, SourceKey
from stores.team_support import CALL_S

NOBODY = PublishedWorkspace("other", "other", "elsewhere", "bob", "model-of-others")


class Publishing:
    """Some notes and the publisher of their index, without a daemon."""

    def __init__(self, folder, server, *, embedder=None):
        folder.mkdir()
        self.notes = Notes(folder, embedder=embedder or WordHashEmbedder())
        self.client = server.client()
        self._writing = threading.Lock()
        self.identity = Identity(folder)
        self.publisher = Publisher(server.client(), server.uri, self.identity, self._write)
        visibility = Visibility(Patterns(of_config("agents_ignore", ()), below=True), replacements)
        self.publisher.attach(self.notes.root, self.notes.index, visibility, ())
        self.publisher.start()

    @property
    def id(self):
        return self.identity.workspace_id(self.notes.root)

    @property
    def shared(self):
        [shared] = self.publisher.shared
        return shared

    @contextmanager
    def writing(self):
        """Change the index as the writing thread does, and wake the publisher as an event does."""
        with self._writing:
            yield self.notes
        self.publisher.wake()

    def announced(self):
        return {one.id: one.model_id for one in self.client.workspaces(CALL_S)}.get(self.id)

    def vectors(self):
        """Return path → lengths of the vectors that the store has, None for chunks without."""
        listed = self.client.sources(self.id, "", 1000, CALL_S)
        keys = tuple(SourceKey(self.id, one.key.path) for one in listed)
        found = self.client.evidence(keys, CALL_S)
        return {one.key.path: [c.vector and len(c.vector) // 4 for c in one.chunks] for one in found}

    def close(self):
        self.publisher.close()
        self.client.close()
        self.notes.index.close()

    def _write(self, work):
        with self._writing:
            return work()


@pytest.fixture
def publishing(tmp_path, server):
    made = []

    def make(name="ada", **settings):
        made.append(Publishing(tmp_path / name, server, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_words_are_there_before_vectors_and_vectors_follow(publishing):
    """A model that is slow delays no publication."""
    ada = publishing()
    with ada.writing() as notes:
        notes.save({"a.md": "one"}, embed=False)
    until(lambda: ada.vectors() == {"a.md": [None]})
    with ada.writing() as notes:
        notes.embed()
    until(lambda: ada.vectors() == {"a.md": [64]})
    assert ada.announced() == "word-hash"


def test_a_workspace_of_another_model_is_shared_by_its_words(publishing, server):
    """And its status says of which model the store's vectors are."""
    with closing(server.client()) as client:
        client.publish(NOBODY, CALL_S)
    ada = publishing()
    with ada.writing() as notes:
        notes.save({"a.md": "one"})
    until(lambda: ada.vectors() == {"a.md": [None]})
    assert ada.announced() == ""
    assert ada.shared.other_model == "model-of-others"


def test_of_two_models_at_once_the_store_takes_one(publishing):
    """Whichever comes first; the other workspace is shared by its words."""
    both = [publishing("ada"), publishing("bob", embedder=OtherHashEmbedder())]
    for one in both:
        with one.writing() as notes:
            notes.save({"a.md": "one"})
    until(lambda: all(one.vectors().keys() == {"a.md"} and not one.shared.waiting for one in both))
    until(lambda: min(one.announced() or "" for one in both) == "")
    until(lambda: sorted(str(one.vectors()["a.md"][0]) for one in both)[1] == "None")


def test_a_changed_model_replaces_all_vectors(publishing):
    """While there are some of both, the store is told of no model; at the end of the new one."""
    ada = publishing()
    with ada.writing() as notes:
        notes.save({f"{number}.md": f"word{number}" for number in range(300)})
    until(lambda: ada.vectors() == {f"{number}.md": [64] for number in range(300)})
    told = []
    original = ada.publisher._store.publish

    def noted(workspace, deadline_s):
        told.append(workspace.model_id)
        original(workspace, deadline_s)

    ada.publisher._store.publish = noted
    with ada.writing() as notes:
        notes.switch(OtherHashEmbedder())
        notes.embed()
        assert notes.index.finish_building(frozenset())
    until(lambda: ada.announced() == "other-hash")
    assert ada.vectors() == {f"{number}.md": [32] for number in range(300)}
    assert told == ["", "other-hash"]


def test_vectors_that_the_store_may_not_have_any_more_are_taken_back(publishing, server):
    ada, bob = publishing("ada"), publishing("bob")
    for one in (ada, bob):
        with one.writing() as notes:
            notes.save({"a.md": "one"})
        until(lambda one=one: one.vectors() == {"a.md": [64]})
    with bob.writing() as notes:
        notes.switch(OtherHashEmbedder())
        notes.embed()
        notes.index.finish_building(frozenset())
    until(lambda: bob.vectors() == {"a.md": [None]})
    assert (ada.announced(), bob.announced()) == ("word-hash", "")


def test_a_text_that_gets_no_vector_is_complete_without(publishing):
    ada = publishing(embedder=LatinEmbedder())
    with ada.writing() as notes:
        notes.save({"a.md": "one", "b.md": "цапля"})
    until(lambda: ada.vectors() == {"a.md": [64], "b.md": [None]})
    until(lambda: ada.shared.waiting == 0)


def test_an_identity_that_was_copied_to_another_machine_is_a_new_one(tmp_path, monkeypatch):
    """Otherwise one would withdraw what the other publishes."""
    first = Identity(tmp_path)
    from memd.stores import identity

    known = identity.Publication("id", "address")
    first.remember("/notes", known)
    again = Identity(tmp_path)
    assert again.published("address") == {"/notes": known}
    assert again.workspace_id(tmp_path) == first.workspace_id(tmp_path)
    monkeypatch.setattr(identity, "_machine_key", lambda: "another")
    other = Identity(tmp_path)
    assert other.published("address") == {}
    assert other.workspace_id(tmp_path) != first.workspace_id(tmp_path)

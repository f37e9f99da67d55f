"""What leaves the machine of a source: secrets masked wherever they are, hidden notes not at all."""

from functools import partial

import pytest

from memd.entries.secrets import replacements
from memd.index.outbox import Sent
from memd.index.visibility import Visibility
from memd.sources.ignore import Patterns, of_config
from memd.stores import wire
from memd.stores.local import LocalStore
from memd.stores.outgoing import outgoing
from memd.stores.store import PublishedWorkspace, SourceKey

SECRET = "ghp_" + "x7Kq9LmN2pR4sT6vW8yZ1aB3cD5eF7gH9jK0"
PASSWORD = "Xk29fLq8Zr4Tn6Wm1Bv7"


def sent(notes, *paths, ignored=(), has_vectors=True):
    """Return path → what is sent of it, None: nothing."""
    visibility = Visibility(Patterns(of_config("agents_ignore", ignored), below=True), replacements)
    due = [Sent(path, number) for number, path in enumerate(paths, start=7)]
    with notes.index.view_apart() as view:
        made = outgoing(view, visibility, "id", due, has_vectors=has_vectors, key=b"key")
        return {one.path: source for one, source in made}


def test_a_source_is_sent_whole(notes):
    """With its place, its terms, its vectors and the revision of the outbox."""
    notes.save({"a.md": "---\ntags: [birds]\nstatus: open\n---\n# Heron\n\nIt nests at [[weir]]."})
    found = sent(notes, "a.md")["a.md"]
    [chunk] = found.chunks
    assert (found.key.workspace, found.key.path, found.revision) == ("id", "a.md", 7)
    assert (found.title, found.tags, dict(found.fields)["status"]) == ("Heron", ("birds",), "open")
    assert chunk.words.split()[-6:] == ["heron", "it", "nests", "at", "weir", "open"]
    assert chunk.length == len(chunk.words.split())
    assert len(chunk.vector) == notes.embedder.dim * 4
    assert found.links[0][1] == "weir"


def test_hidden_and_deleted_notes_are_not_sent(notes):
    """Private ones, those that agents_ignore names, and those that are gone."""
    private = "---\nprivate: true\n---\ntwo"
    notes.save({"a.md": "one", "b.md": private, "drafts/c.md": "three", "d.md": "four"})
    notes.remove("d.md")
    found = sent(notes, "a.md", "b.md", "drafts/c.md", "d.md", "never.md", ignored=["drafts/"])
    assert [path for path, source in found.items() if source is not None] == ["a.md"]


@pytest.mark.parametrize(
    "text",
    [
        f"The key is {SECRET} here.",
        f"# Title with {SECRET}\n\nText.",
        f"---\ntitle: {SECRET}\n---\nText.",
        f"---\naliases: [{SECRET}]\n---\nText.",
        f"---\ntags: [{SECRET}]\n---\nText.",
        f"---\npassword: {PASSWORD}\n---\nText.",
        f"---\nservice:\n  api_token: {PASSWORD}\n---\nText.",
        f"# One\n\n## {SECRET}\n\nText below it.",
        f"See [[{SECRET}]].",
    ],
)
def test_a_secret_is_in_no_byte_of_what_is_sent(notes, text):
    """Nor are its terms, and the hash of the file tells nothing of it."""
    notes.save({"a.md": text})
    source = sent(notes, "a.md")["a.md"]
    sent_bytes = []

    class Peer:
        def settimeout(self, _value):
            pass

        def sendall(self, raw):
            sent_bytes.append(raw)

    wire.send(Peer(), (source,))
    raw = b"".join(sent_bytes).lower()
    for secret in (SECRET, PASSWORD):
        assert secret.lower().encode() not in raw
    [[digest]] = notes.index.writer.run("SELECT hash FROM sources")
    assert source.hash != digest
    assert len(source.hash) == len(digest)


def test_a_chunk_with_a_secret_has_no_vector_and_hashes_of_the_masked_text(notes):
    """From these, a short password could be guessed."""
    notes.save({"a.md": f"The key is {SECRET} here.", "b.md": "Nothing here."})
    found = sent(notes, "a.md", "b.md")
    [masked], [plain] = found["a.md"].chunks, found["b.md"].chunks
    stored = dict(notes.index.writer.run("SELECT text, hash FROM chunks"))
    assert masked.vector is None
    assert plain.vector is not None
    assert masked.hash != stored[f"The key is {SECRET} here."]
    assert plain.hash == stored["Nothing here."]


def test_a_search_of_the_own_index_masks_what_is_published_masked(notes):
    """Also a value whose key alone shows that it is a secret."""
    notes.save({"a.md": f"---\nservice:\n  api_token: {PASSWORD}\nstatus: open\n---\nText."})
    visibility = Visibility(Patterns(of_config("agents_ignore", ()), below=True), replacements)
    store = LocalStore(
        PublishedWorkspace("id", "notes", "here", "me", ""), partial(notes.index.view, visible=visibility)
    )
    [own] = store.evidence((SourceKey("id", "a.md"),), 5)
    assert dict(own.fields) == {"service.api_token": "[masked: credential]", "status": "open"}
    assert own.fields == sent(notes, "a.md")["a.md"].fields


def test_by_words_alone_there_are_no_vectors(notes):
    notes.save({"a.md": "one"})
    [chunk] = sent(notes, "a.md", has_vectors=False)["a.md"].chunks
    assert chunk.vector is None
    assert chunk.words == "a one"

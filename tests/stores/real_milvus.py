"""The store in Milvus, on a file of Milvus Lite 2.5.1, held against the reference store. For `.ci/long`.

Needs pymilvus and milvus-lite; what is missing is a failure, not a reason to skip. With MEMD_TEST_MILVUS, the
address of a server, the same tests run there; they create and drop collections whose names begin with
memd_test.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from daemon_process import until
from pymilvus import DataType, MilvusClient

from memd.config import TeamConfig
from memd.errors import StoreError, StoreModelError, StoreRefusedError
from memd.stores import milvus_counts
from memd.stores.milvus import MilvusStore
from memd.stores.remote import connect
from memd.stores.store import Filter, Forms, SourceKey, Wanted
from stores.published_notes import HOSTILE, MODEL, WORDS, chunk, random_sources, source, vector_of, workspace
from stores.reference_store import Body, ReferenceStore

# Milvus Lite 2.5.1 imports pkg_resources, which says that it is deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:pkg_resources", "ignore:Deprecated call to `pkg_resources")
CALL_S = 60.0
SERVER = os.environ.get("MEMD_TEST_MILVUS", "")
NOTHING = Wanted((), (), None, None, (), 500)
NAMES = itertools.count()


def wanted(*terms: str, **more: object) -> Wanted:
    return msgspec.structs.replace(NOTHING, terms=terms, **more)


@pytest.fixture
def config(tmp_path):
    """A team's configuration with nothing at its address yet."""
    name = f"memd_test{os.getpid()}_{next(NAMES)}"
    if not SERVER:
        yield TeamConfig(uri=f"milvus+lite://{tmp_path}/team.db", collection=name)
        return
    yield TeamConfig(uri=SERVER, collection=name)
    client = MilvusClient(SERVER)
    for collection in client.list_collections():
        if collection.startswith(name):
            client.drop_collection(collection)


@pytest.fixture
def store(config):
    return MilvusStore(config)


@pytest.fixture
def reference(tmp_path):
    return ReferenceStore(Body(tmp_path / "reference.db"), "token", ["team"])


@pytest.fixture
def both(store, reference):
    """Two stores with the same notes of two workspaces."""
    for each in (store, reference):
        for number, name in enumerate(("one", "two")):
            each.publish(workspace(name), CALL_S)
            each.replace(tuple(random_sources(number, 60, workspace=f"id of {name}")), CALL_S)
    return store, reference


def test_whole_sources_and_listings_are_those_that_were_written(both):
    """Evidence has every byte of a source, and a listing pages through all paths in order."""
    ours, theirs = both
    listed = theirs.sources("id of one", "", 1000, CALL_S)
    assert ours.sources("id of one", "", 1000, CALL_S) == listed
    paged, after = [], ""
    while page := ours.sources("id of one", after, 7, CALL_S):
        paged += page
        after = page[-1].key.path
    assert tuple(paged) == listed
    keys = (*(one.key for one in listed), SourceKey("id of one", "missing.md"))
    assert ours.evidence(keys, CALL_S) == theirs.evidence(keys, CALL_S)
    assert ours.workspaces(CALL_S) == theirs.workspaces(CALL_S)


def test_both_lists_have_what_exact_lists_have(both):
    """The list by vector is the exact one, and that by words has each chunk with a term of the query."""
    ours, theirs = both
    rng = random.Random(1)
    for _ in range(20):
        terms = tuple(rng.sample(WORDS, 3))
        asked = wanted(
            *terms, vector=vector_of(" ".join(terms)), workspaces=rng.choice([None, ("id of two",)])
        )
        found, expected = ours.candidates(asked, CALL_S), theirs.candidates(asked, CALL_S)
        assert set(found.by_words) == set(expected.by_words)
        assert found.by_vector == expected.by_vector


def test_the_order_by_words_is_that_of_exact_bm25_over_all_chunks(both):
    """With one term the pool has BM25's order: with all workspaces Milvus's counts are memd's."""
    ours, theirs = both
    for term in ("word1", "日本", "3.11"):
        found, expected = (each.candidates(wanted(term, pool=20), CALL_S).by_words for each in both)
        assert len(set(found) & set(expected)) >= 19, term  # equal scores are in any order
    assert ours.candidates(wanted("word1"), CALL_S).by_words
    assert theirs is both[1]


def test_filters_leave_what_they_leave_at_home(both):
    """Any filter leaves the same chunks as the reference store; hostile values are values."""
    ours, theirs = both
    rng = random.Random(2)
    shapes = [
        lambda: Filter("tag", (rng.choice(["project", "idea", *HOSTILE]),)),
        lambda: Filter("path", (rng.choice(["daily/*", "*alpha*", "projects", "*e*.md", *HOSTILE]),)),
        lambda: Filter("field", (f"status{rng.choice(['=', '!='])}{rng.choice(['draft', *HOSTILE])}",)),
        lambda: Filter("field", (rng.choice(["priority>=2", "priority=2", "due=2026-05", "!due", "due"]),)),
        lambda: Filter(rng.choice(["since", "until"]), (f"202{rng.randint(4, 6)}-03-01",)),
        lambda: Filter(
            rng.choice(["phrase", "excluded"]), (f"{rng.choice(WORDS)} {rng.choice(WORDS)}", "日*")
        ),
    ]
    for _ in range(60):
        filters = tuple(rng.choice(shapes)() for _ in range(rng.randint(1, 2)))
        asked = wanted("word1", "word2", vector=vector_of("word1"), filters=filters)
        found, expected = ours.candidates(asked, CALL_S), theirs.candidates(asked, CALL_S)
        assert set(found.by_words) == set(expected.by_words), filters
        assert found.by_vector == expected.by_vector, filters
        newest = wanted(filters=filters, pool=10)
        assert ours.candidates(newest, CALL_S).by_words == theirs.candidates(newest, CALL_S).by_words, filters


def test_filters_that_leave_few_of_many_fill_the_pool(store):
    """A condition that Milvus cannot test is tested on more hits until the pool is full."""
    store.publish(workspace(), CALL_S)
    few = ("100 few.md", "150 few.md")
    some = tuple(
        source(few[n % 2] if n in {100, 151} else f"{n}.md", chunk(0, "word"), fields=(("rank", str(n)),))
        for n in range(200)
    )
    store.replace(some, CALL_S)
    asked = wanted("word", vector=vector_of("word"), filters=(Filter("path", ("*few*",)),), pool=2)
    found = store.candidates(asked, CALL_S)
    assert {one.path for one in found.by_words} == {one.path for one in found.by_vector} == set(few)


def test_what_other_tenants_write_does_not_decide_which_term_counts_most(store):
    """A term that is rare in the wanted workspace comes first, though another one is full of it."""
    for name in ("one", "two"):
        store.publish(workspace(name), CALL_S)
    words = ["alpha word1", *["beta word1"] * 10, *["word2 word1"] * 10]
    store.replace(tuple(source(f"{n}.md", chunk(0, text)) for n, text in enumerate(words)), CALL_S)
    others = (source(f"{n}.md", chunk(0, "alpha word3"), workspace="id of two") for n in range(200))
    store.replace(tuple(others), CALL_S)
    asked = wanted("alpha", "beta", workspaces=("id of one",), pool=1)
    assert [one.path for one in store.candidates(asked, CALL_S).by_words] == ["0.md"]


def test_counts_are_those_of_the_wanted_workspaces(both):
    """Statistics are exact for terms, beginnings, forms without their word, and whole phrases."""
    ours, theirs = both
    forms = (Forms("searching", ("searched", "searches"), "english", ("german",)),)
    for workspaces in (None, ("id of one",), ("id of nobody",)):
        asked = wanted(
            "word1", "missing", prefixes=("日",), forms=forms, whole="日本 本語", workspaces=workspaces
        )
        assert ours.statistics(asked, CALL_S) == theirs.statistics(asked, CALL_S)


def test_counts_that_are_kept_are_read_again_after_a_write_of_somebody_else(both, config, monkeypatch):
    """What one process keeps of counts is forgotten when another one has written; without a write, used."""
    monkeypatch.setattr(milvus_counts, "COUNTS_S", -1.0)  # each call looks whether there was a write
    ours, theirs = both
    asked = wanted(*WORDS, prefixes=("日",))
    assert ours.statistics(asked, CALL_S) == theirs.statistics(asked, CALL_S)
    read = ours._milvus.values

    def no_terms(clock, keys, **more):
        assert all(key.endswith(".") for key in keys)  # only totals
        return read(clock, keys, **more)

    with monkeypatch.context() as watched:
        watched.setattr(ours._milvus, "values", no_terms)
        assert ours.statistics(asked, CALL_S) == theirs.statistics(asked, CALL_S)
    # The same numbers of chunks and of terms: only words change.
    for each in (MilvusStore(config), theirs):
        each.replace((source("b.md", chunk(0, "alpha word1"), revision=2),), CALL_S)
        each.replace((source("b.md", chunk(0, "beta word2"), revision=3),), CALL_S)
        assert ours.statistics(wanted("word1"), CALL_S).frequencies
    asked = wanted(*WORDS, "alpha", "beta")
    assert ours.statistics(asked, CALL_S) == theirs.statistics(asked, CALL_S)


def test_words_near_a_word_are_its_forms_spellings_and_endings(both):
    ours, theirs = both
    counts = theirs.statistics(wanted("searching", "inhibition", "inhibits"), CALL_S).frequencies
    near = ours.vocabulary("serching", CALL_S, "english")
    assert near.spellings == {"searching": counts["searching"]}
    assert ours.vocabulary("inhibit", CALL_S, "english").endings.keys() == {"inhibits", "inhibition"}
    assert ours.vocabulary("inhibit", CALL_S, "english").forms.keys() == {"inhibits", "inhibition"}
    assert ours.vocabulary("word1", CALL_S).spellings == {}


def test_phrases_are_found_in_all_chunks_that_have_them(both):
    """The holders of a phrase are complete, and say which of them meet the filters."""
    ours, theirs = both
    phrases = ("本語 語", "word1 word2", "missing word", "naive 日*")
    asked = wanted("word1", named=phrases, filters=(Filter("tag", ("project",)),))
    found, expected = ours.candidates(asked, CALL_S).named, theirs.candidates(asked, CALL_S).named
    for ours_, theirs_ in zip(found, expected, strict=True):
        assert ours_.is_complete == theirs_.is_complete
        assert dict(zip(ours_.chunks, ours_.meets, strict=True)) == dict(
            zip(theirs_.chunks, theirs_.meets, strict=True)
        )


def test_sources_that_supersede_others_are_found_by_names(store, reference):
    """What replaces a source, over several steps, is found by names, and so is what shares a conversation."""
    notes = (
        source("old.md", chunk(0, "a"), names=(("path", "old"),)),
        source(
            "newer.md", chunk(0, "a"), names=(("path", "newer"),), links=(("supersedes", "old", "old", None),)
        ),
        source(
            "newest.md", chunk(0, "a"), links=(("supersedes", "newer", "newer", 1), ("text", "x", "x", 2))
        ),
        source("x.md", chunk(0, "a"), names=(("path", "x"),)),
        source("memory/archives/a.md", chunk(0, "a"), fields=(("source.session", "s"),)),
        source("memory/b.md", chunk(0, "a"), fields=(("source.session", "s"),)),
    )
    for each in (store, reference):
        each.publish(workspace(), CALL_S)
        each.replace(notes, CALL_S)
    for one in notes:
        assert store.related((one.key,), CALL_S) == reference.related((one.key,), CALL_S), one.key.path


def test_a_revision_replaces_lower_ones_and_repeating_changes_nothing(store, reference):
    """The newest revision is what all answers come from; a repeated or late call changes nothing."""
    for each in (store, reference):
        each.publish(workspace(), CALL_S)
        first = source("note.md", chunk(0, "alpha beta"), chunk(1, "gamma"), revision=1)
        second = source("note.md", chunk(0, "alpha delta"), revision=2)
        for calls in ((first,), (second,), (second,), (first,), (source("b.md", chunk(0, "beta")),)):
            each.replace(calls, CALL_S)
        each.remove(((SourceKey("id of one", "b.md"), 0),), CALL_S)  # a lower one than is stored
    equal(store, reference)
    for each in (store, reference):
        each.remove(((SourceKey("id of one", "b.md"), 1),), CALL_S)
        each.remove(((SourceKey("id of one", "b.md"), 1),), CALL_S)
    equal(store, reference)
    assert rows_of(store) == 1


def test_an_unpublished_workspace_leaves_nothing(store):
    """After a workspace is unpublished, no collection has a row of it, and it may be published again."""
    for name in ("one", "two"):
        store.publish(workspace(name), CALL_S)
        store.replace(tuple(random_sources(1, 5, workspace=f"id of {name}")), CALL_S)
    store.unpublish("id of one", CALL_S)
    store.unpublish("id of one", CALL_S)
    assert {one.workspace for one in store.candidates(wanted(*WORDS), CALL_S).by_words} == {"id of two"}
    assert store.sources("id of one", "", 10, CALL_S) == ()
    assert store.statistics(wanted("word1", workspaces=("id of one",)), CALL_S).chunks == 0
    milvus = store._milvus
    for collection in (milvus.words, milvus.vectors, milvus.rows):
        assert {row["ws"] for row in milvus.query(collection, clock(), 'key > ""', ["ws"])} == {ours("two")}
    with pytest.raises(StoreRefusedError, match="not published"):
        store.replace((source("x.md", chunk(0, "x")),), CALL_S)


def test_a_source_that_takes_many_rows_is_replaced_whole(store, reference):
    """A source of a megabyte is read whole, also after it became another one, and leaves no part behind."""
    rng = random.Random(1)
    long = [
        source(
            "long.md",
            *(
                chunk(n, "word", text="".join(map(chr, rng.choices(range(256), k=900))))
                for n in range(300 * size)
            ),
            revision=size,
        )
        for size in (1, 2)
    ]
    for each in (store, reference):
        each.publish(workspace(), CALL_S)
        for one in [*long, source("long.md", chunk(0, "short"), revision=3)][:2]:
            each.replace((one,), CALL_S)
    equal(store, reference)
    store.replace((source("long.md", chunk(0, "short"), revision=3),), CALL_S)
    assert not store._milvus.query(store._milvus.rows, clock(), 'key > "p.s" and key < "p.t"', ["key"])


class Failing:
    """A client of Milvus whose writes fail from a certain one on, before or after they are made."""

    def __init__(self, client, left: int, *, is_after: bool) -> None:
        self.client, self.left, self.is_after = client, left, is_after

    def __getattr__(self, name):
        method = getattr(self.client, name)
        if name not in {"upsert", "delete"}:
            return method

        def call(*args, **named):
            self.left -= 1
            if self.left < 0 and not (self.is_after and self.left == -1):
                raise ConnectionError("the connection was lost")
            found = method(*args, **named)
            if self.left < 0:
                raise ConnectionError("the connection was lost")
            return found

        return call


@pytest.mark.parametrize("is_after", [False, True])
def test_a_call_that_fails_anywhere_is_completed(config, reference, is_after):
    """Wherever a call fails, repeating it in a new store leaves rows and counts as if it had not."""
    store = MilvusStore(config)
    for each in (store, reference):
        each.publish(workspace(), CALL_S)
        each.replace(tuple(random_sources(1, 8)), CALL_S)
    for step in range(30):
        revision = step + 2
        new = tuple(random_sources(step, 5, revision=revision))
        gone = ((random_sources(1, 8)[7].key, revision),)
        store._milvus._client = Failing(store._milvus._connected(clock()), step % 15, is_after=is_after)
        calls = [
            lambda each, new=new: each.replace(new, CALL_S),
            lambda each, gone=gone: each.remove(gone, CALL_S),
        ]
        for call in calls:
            call(reference)
            try:
                call(store)
            except StoreError:
                again = MilvusStore(config)
                again._milvus._client = store._milvus._client.client
                call(again)
                store = again
        store._milvus._client = getattr(store._milvus._client, "client", store._milvus._client)
    equal(store, reference)


def test_a_killed_process_loses_no_source_and_leaves_no_row(config, reference):
    """After kills while it writes, the store that goes on converges to what was asked for."""
    if SERVER:
        pytest.skip("a file is what a killed process may damage")
    program = (
        "import sys; sys.path.append(sys.argv[2])\n"
        "from stores.published_notes import random_sources, workspace\n"
        "from memd.config import TeamConfig\nfrom memd.stores.milvus import MilvusStore\n"
        "store = MilvusStore(TeamConfig(uri=sys.argv[1], collection=sys.argv[3]))\n"
        "store.publish(workspace(), 60.0)\n"
        "print(flush=True)\n"
        "for n in range(1000):\n"
        "    store.replace(tuple(random_sources(n, 6, revision=n + 1)), 60.0); print(n, flush=True)\n"
    )
    for kill in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", program, config.uri, str(Path(__file__).parents[1]), config.collection],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.Random(kill).uniform(0.2, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        time.sleep(2)  # Milvus Lite's own process ends after its client
    store = MilvusStore(config)
    last = tuple(random_sources(7, 6, revision=5000))
    for each in (store, reference):
        each.publish(workspace(), CALL_S)
        each.replace(last, CALL_S)
    keys = {one.key for one in last}
    rest = tuple(
        (one.key, 5000) for one in store.sources("id of one", "", 1000, CALL_S) if one.key not in keys
    )
    store.remove(rest, CALL_S)
    equal(store, reference)


def test_a_collection_of_somebody_else_is_refused(config):
    """A collection with the team's name that memd did not make is named, and not written to."""
    store = MilvusStore(config)
    client = store._milvus._connected(clock())
    client.create_collection(f"{config.collection}_rows", dimension=4)
    for call in (lambda: store.workspaces(CALL_S), lambda: store.publish(workspace(), CALL_S)):
        with pytest.raises(StoreRefusedError, match="was not made by memd"):
            call()


def test_a_collection_of_another_version_is_refused(config):
    """A collection of a later memd says what to do."""
    store = MilvusStore(config)
    client = store._milvus._connected(clock())
    schema = client.create_schema(auto_id=False, description='memd team{"schema": 2}')
    schema.add_field("key", DataType.VARCHAR, is_primary=True, max_length=10)
    schema.add_field("none", DataType.FLOAT_VECTOR, dim=2)
    client.create_collection(f"{config.collection}_rows", schema=schema)
    with pytest.raises(StoreRefusedError, match="has version 2, and this memd writes version 1"):
        store.workspaces(CALL_S)


def test_another_model_is_refused_by_its_name(store):
    """A workspace of another model is refused before a vector is written; its words alone are taken."""
    store.publish(workspace(), CALL_S)
    store.replace((source("x.md", chunk(0, "x")),), CALL_S)
    with pytest.raises(StoreModelError, match=f"the team's vectors are of '{MODEL}'"):
        store.publish(workspace("two", "another model"), CALL_S)
    store.publish(workspace("two", ""), CALL_S)
    store.replace((source("y.md", chunk(0, "x", has_vector=False), workspace="id of two"),), CALL_S)
    assert len(store.candidates(wanted("x"), CALL_S).by_words) == 2
    assert store.candidates(wanted(vector=b"\0\0\x80?"), CALL_S).by_vector == ()


def test_an_address_where_nothing_answers_is_named(tmp_path):
    """A wrong address, a file in a folder that is missing: one line with the address, in time."""
    for uri in ("http://127.0.0.1:1", f"milvus+lite://{tmp_path}/missing/x.db"):
        started = time.monotonic()
        with pytest.raises(StoreError) as error:
            MilvusStore(TeamConfig(uri=uri)).workspaces(5.0)
        assert str(error.value).startswith(uri)
        assert not isinstance(error.value, StoreRefusedError)  # it may answer later
        assert "\n" not in str(error.value)
        assert time.monotonic() - started < 30


def test_a_daemon_uses_it_in_a_process_of_its_own(config, reference, tmp_path, monkeypatch):
    """Over the wire the store is the same, and a `.env` of the working directory has no effect on it."""
    (tmp_path / ".env").write_text("MILVUS_URI=http://127.0.0.1:1\n")
    monkeypatch.chdir(tmp_path)
    remote = connect(config)
    try:
        until(lambda: is_ready(remote), CALL_S)
        for each in (remote, reference):
            each.publish(workspace(), CALL_S)
            each.replace(tuple(random_sources(1, 5)), CALL_S)
        equal(remote, reference)
        with pytest.raises(StoreModelError):
            remote.publish(workspace("two", "another model"), CALL_S)
    finally:
        remote.close()


def is_ready(remote) -> bool:
    """Return whether the process of a store has read its library, for which a call waits some seconds."""
    with suppress(StoreError):
        remote.workspaces(CALL_S)
        return True
    return False


def clock():
    from memd.stores.milvus_client import Clock

    return Clock(CALL_S)


def ours(name: str) -> str:
    from memd.stores.milvus_rows import digest

    return digest(f"id of {name}")


def rows_of(store) -> int:
    milvus = store._milvus
    return len(milvus.query(milvus.words, clock(), 'key > ""', ["key"]))


def equal(ours, theirs) -> None:
    """Assert that two stores have the same sources, counts and candidates."""
    if isinstance(ours, MilvusStore):
        ours._counts.forget()
    listed = theirs.sources("id of one", "", 10_000, CALL_S)
    assert ours.sources("id of one", "", 10_000, CALL_S) == listed
    keys = tuple(one.key for one in listed)
    assert ours.evidence(keys, CALL_S) == theirs.evidence(keys, CALL_S)
    every = wanted(*WORDS, "alpha", "beta", "gamma", "delta", "word", prefixes=("日",))
    assert ours.statistics(every, CALL_S) == theirs.statistics(every, CALL_S)
    asked = wanted(*every.terms, vector=vector_of("word1"), pool=2000)
    found, expected = ours.candidates(asked, CALL_S), theirs.candidates(asked, CALL_S)
    assert sorted(found.by_words) == sorted(expected.by_words)
    assert sorted(found.by_vector) == sorted(expected.by_vector)
    if isinstance(ours, MilvusStore):
        assert rows_of(ours) == sum(one.chunks for one in listed)

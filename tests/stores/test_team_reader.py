"""What keeps a search of the team apart from a store that fails, and lays own notes over the store's."""

from dataclasses import replace

import msgspec
import pytest
from tests_support import Notes

from memd.errors import DeadlineError, StoreError, StoreRefusedError
from memd.records import SHIPPED_COSINES, OwnModel
from memd.stores.local import LocalStore
from memd.stores.outcome import Outcome
from memd.stores.store import PublishedWorkspace
from memd.stores.team_reader import RETRY_S, Breaker, Own, TeamReader

FAR = PublishedWorkspace("far", "marsh", "there", "ada", "word-hash")
OWN = PublishedWorkspace("own", "pond", "here", "bob", "")


def failing(error):
    def work():
        raise error

    return work


def test_a_store_that_failed_is_tried_once_in_a_while():
    """One caller tries it again after RETRY_S; all others fail at once, until it has answered."""
    now = [0.0]
    breaker = Breaker(Outcome(), lambda: now[0])
    with pytest.raises(StoreError, match="away"):
        breaker.run(failing(StoreError("away")))
    tried = []
    with pytest.raises(StoreError, match="a moment ago"):
        breaker.run(lambda: tried.append(1))
    now[0] = RETRY_S
    with pytest.raises(StoreError, match="still away"):
        breaker.run(failing(StoreError("still away")))
    with pytest.raises(StoreError, match="a moment ago"):
        breaker.run(lambda: tried.append(1))
    now[0] = 2 * RETRY_S
    assert breaker.run(lambda: "answer") == "answer"
    assert breaker.run(lambda: "next") == "next"
    assert tried == []


def test_a_refusal_is_an_answer():
    """The store is there: the next query asks it."""
    breaker = Breaker(Outcome())
    with pytest.raises(StoreRefusedError):
        breaker.run(failing(StoreRefusedError("no such filter")))
    assert breaker.run(lambda: 1) == 1


def test_what_the_store_answers_is_noted():
    """A failure and a refusal with their text, until an answer; that nobody was asked is no outcome."""
    outcome = Outcome()
    breaker = Breaker(outcome)
    with pytest.raises(StoreRefusedError):
        breaker.run(failing(StoreRefusedError("no such token")))
    assert (outcome.error, outcome.is_reachable) == ("no such token", True)
    assert breaker.run(lambda: 1) == 1
    assert (outcome.error, outcome.last_error, outcome.is_reachable) == ("", "no such token", True)
    with pytest.raises(StoreError):
        breaker.run(failing(StoreError("away")))
    with pytest.raises(StoreError, match="a moment ago"):
        breaker.run(lambda: 1)
    assert (outcome.error, outcome.is_reachable) == ("away", False)


@pytest.mark.parametrize("error", [StoreRefusedError("no such filter"), DeadlineError("too late")])
def test_a_trial_without_a_failure_of_the_store_keeps_nobody_out(error):
    """As after the deadline of its caller, or a refusal: the next caller asks at once."""
    now = [0.0]
    breaker = Breaker(Outcome(), lambda: now[0])
    with pytest.raises(StoreError):
        breaker.run(failing(StoreError("away")))
    now[0] = RETRY_S
    with pytest.raises(type(error)):
        breaker.run(failing(error))
    assert breaker.run(lambda: 1) == 1


class Both:
    """A store of several workspaces, each a `LocalStore`; counts are those of the first one."""

    def __init__(self, *stores):
        self.stores = stores

    def workspaces(self, _deadline_s):
        return tuple(one.workspace for one in self.stores)

    def statistics(self, *asked):
        return self.stores[0].statistics(*asked)

    def vocabulary(self, *asked):
        return self.stores[0].vocabulary(*asked)

    def candidates(self, *asked):
        each = [one.candidates(*asked) for one in self.stores]
        words = tuple(key for one in each for key in one.by_words)
        return msgspec.structs.replace(
            each[0], by_words=words, by_vector=tuple(key for one in each for key in one.by_vector), named=()
        )

    def lean(self, chunks, wanted, deadline_s):
        return self.stores[0].lean(chunks, wanted, deadline_s)

    def related(self, *asked):
        return tuple(source for one in self.stores for source in one.related(*asked))

    def evidence(self, *asked):
        return tuple(source for one in self.stores for source in one.evidence(*asked))


@pytest.fixture
def far(tmp_path):
    (tmp_path / "far").mkdir()
    notes = Notes(tmp_path / "far")
    yield notes
    notes.index.close()


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own").mkdir()
    notes = Notes(tmp_path / "own")
    yield notes
    notes.index.close()


def asked(far: Notes, own: Notes, text: str, *, stale: tuple[LocalStore, ...] = ()):
    """Ask for *text* in keyword mode; return (workspace, path) of each hit."""
    store = Both(LocalStore(FAR, far.index.view), *stale)
    reader = TeamReader(store, lambda: [Own(OWN, str(own.root), own.index.view)], Outcome())
    plain = replace(own.request(text), alive=lambda _: True)
    try:
        model = OwnModel("word-hash", own.embedder.tokenizer, SHIPPED_COSINES)
        made = reader.search(plain, lambda prepared: prepared, model)
    finally:
        reader.close()
    view = made.found.view
    return [(view.key(hit.source.id).workspace, hit.source.path) for hit in made.found.answer.hits]


def test_equal_paths_of_two_workspaces_are_two_notes(far, own):
    """Each hit is of its workspace; a link of one replaces no note of the other."""
    far.save(
        {
            "plan.md": "# Plan\n\nThe heron plan.\n",
            "new.md": "---\nsupersedes: plan.md\n---\n# New\n\nNo more.\n",
        }
    )
    own.save({"plan.md": "# Plan\n\nOur heron plan, quite another one.\n"})
    found = asked(far, own, "heron plan")
    assert set(found) == {("far", "plan.md"), ("own", "plan.md")}


def test_the_own_state_of_a_note_lies_over_the_stores(far, own):
    """What the store still has of a changed or deleted note is in no answer."""
    own.save({"a.md": "# A\n\nThe heron was here.\n", "b.md": "# B\n\nA heron and a weir.\n"})
    stale = Notes(own.root.parent, state="stale")
    stale.save({"a.md": "# A\n\nThe heron was here.\n", "b.md": "# B\n\nA heron and a weir.\n"})
    old = LocalStore(OWN, stale.index.view)
    own.save({"a.md": "# A\n\nA crane is here.\n"})
    own.remove("b.md")
    far.save({"c.md": "# C\n\nFar heron.\n"})
    assert asked(far, own, "heron", stale=(old,)) == [("far", "c.md")]
    assert asked(far, own, "crane", stale=(old,)) == [("own", "a.md")]
    stale.index.close()


def test_a_note_that_left_the_disk_a_moment_ago_is_no_hit(far, own):
    far.save({"c.md": "# C\n\nFar heron.\n"})
    own.save({"a.md": "# A\n\nThe heron was here.\n"})
    (own.root / "a.md").unlink()
    assert asked(far, own, "heron") == [("far", "c.md")]


def test_a_word_that_only_an_own_note_has_is_not_corrected(far, own):
    far.save({"c.md": "# C\n\nThe herons and the cranes.\n"})
    own.save({"a.md": "# A\n\nA craneo stands in the museum.\n"})
    assert asked(far, own, "craneo") == [("own", "a.md")]

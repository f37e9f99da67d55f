"""A note past its last day ranks lower and says so; an evergreen note keeps its score."""

from datetime import date, datetime, timedelta

import pytest
from tests_support import DAY

from memd.search import fallback
from memd.search.explain import explain
from memd.search.score import lifted

OFFICE = "The office is closed: the office door, closed by the office manager.\n"
# Values of front matter are words: this note has as many.
OPEN = "---\nopened_at: 2019-01-01\n---\nThe office is open: the office door, by the manager.\n"


def until(day, text=OFFICE):
    return f"---\nvalid_until: {day}\n---\n{text}"


def found(notes, query="office manager", **changes):
    """Return path → the last day, of the hits that are expired, in their order."""
    return {hit.source.path: hit.expired for hit in notes.search(query, min_score=0.0, **changes).hits}


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_a_note_ranks_first_on_its_last_day_and_not_on_the_next(notes, mode, fusion):
    """The note that holds, and matches half as well, comes first then; both are found."""
    notes.save({"closed.md": until(DAY), "open.md": OPEN})
    before = found(notes, mode=mode, fusion=fusion)
    assert list(before.items()) == [("closed.md", None), ("open.md", None)]
    after = found(notes, mode=mode, fusion=fusion, today=DAY + timedelta(days=1))
    assert list(after.items()) == [("open.md", None), ("closed.md", DAY)]


def test_its_score_does_not_change_and_alone_it_is_found(notes):
    """So it stays above the floor, and the explanation says why it ranks where it does."""
    notes.save({"closed.md": until("2026-05-01")})
    [hit] = notes.search("office").hits
    assert hit.expired == date(2026, 5, 1)
    assert hit.candidate.order == pytest.approx(hit.candidate.score / 2)
    with notes.index.view() as view:
        _, [why] = explain(view, notes.search("office"))
    assert (why.expired, why.order) == ("2026-05-01", pytest.approx(hit.candidate.order))
    assert why.score == pytest.approx(hit.candidate.score)


def test_what_supersedes_an_expired_note_has_its_place(notes):
    """The rule of superseded notes goes before: the newer note is where the older one would have been."""
    notes.save({
        "closed.md": until("2026-05-01"),
        "moved.md": "---\nsupersedes: closed.md\n---\nWe have moved; there is a new manager.\n",
        "garden.md": "The manager of the garden: no office there, the office is elsewhere.\n",
    })  # fmt: skip
    assert list(found(notes)) == ["moved.md", "closed.md", "garden.md"]


def test_without_numpy_the_order_is_the_same(notes):
    notes.save({"closed.md": until("2026-05-01"), "open.md": OPEN})
    with notes.index.view() as view:
        ranked, _ = fallback.candidates(view, notes.request("office manager"))
        assert [one.path for one in lifted(ranked, view.snapshot).candidates] == ["open.md", "closed.md"]


def test_the_day_follows_the_file(notes):
    """A day that is moved, taken out, or gone with the note is known at once, also after a restart."""
    notes.save({"closed.md": until("2026-05-01"), "open.md": OPEN})
    assert found(notes)["closed.md"] == date(2026, 5, 1)
    notes.reopen()
    assert list(found(notes)) == ["open.md", "closed.md"]
    notes.save({"closed.md": until("2026-07-01")})
    assert list(found(notes)) == ["closed.md", "open.md"]
    notes.save({"closed.md": until("2026-05-01")})
    notes.remove("closed.md")
    with notes.index.view() as view:
        assert view.snapshot.sources.expiring == {}


@pytest.mark.parametrize("text", ["soon", "'2026-13-01'", "[2026-05-01]", "May 2026"])
def test_what_is_not_a_day_is_ignored_with_a_warning(notes, text):
    """`status` shows it; the note holds without end."""
    notes.save({"closed.md": until(text)})
    assert found(notes, today=date(2099, 1, 1)) == {"closed.md": None}
    warned = notes.index.writer.warnings()
    assert warned == {"closed.md": "valid_until is not a day like 2026-05-31, and is ignored"}


def test_a_time_counts_as_its_day_in_the_zone_of_the_user(notes):
    at = datetime.fromisoformat("2026-05-31T23:30:00-11:00")
    notes.save({"closed.md": until(f"'{at.isoformat()}'"), "plain.md": until("'2026-05-31 23:30'")})
    with notes.index.view() as view:
        days = {one.path: one.valid_until for one in view.snapshot.sources.values()}
    assert days == {"closed.md": at.astimezone().date(), "plain.md": date(2026, 5, 31)}


@pytest.mark.parametrize(("said", "decays"), [("true", False), ("Yes", False), ("false", True), ("", True)])
def test_an_evergreen_daily_note_does_not_decay(notes, said, decays):
    """Its name has a day as before; a filter by day finds it."""
    notes.save({"2025-01-01.md": f"---\nevergreen: {said}\n---\nThe office has a door.\n"})
    [hit] = notes.search("office since:2025-01-01 until:2025-01-01").hits
    assert (hit.candidate.decay < 1) is decays
    assert hit.source.day_of == "name"
    with notes.index.view() as view:
        _, [why] = explain(view, notes.search("office"))
    assert (why.decay.factor < 1, why.decay.dated) == (decays, decays)

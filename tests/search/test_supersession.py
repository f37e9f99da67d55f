"""A note that another one replaces, that is past its last day, or that a later one changes."""

import dataclasses
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests_support import DAY, Notes, many

from memd.config import Weights
from memd.index.links import NOBODY
from memd.records import LaterStatement
from memd.search import fallback
from memd.search.explain import explain
from memd.search.later import changed_at
from memd.search.newest import now_words
from memd.search.score import lifted
from memd.search.search import search
from memd.search.why import why

# The words of the query stand in the oldest note most often: alone it would be first.
OLD = "Deploy staging: deploy with make stage, deploy on Fridays, deploy to staging.\n"
NEW = "To deploy to staging one pushes a tag, and the pipeline does it. Nobody runs make any more.\n"
NEWEST = "The robot does it. Approve its request, wait for the green light, and look at staging.\n"
OTHER = "Deploy the garden hose on the lawn.\n"


def superseding(*names, text=NEW):
    return f"---\nsupersedes: [{', '.join(names)}]\n---\n{text}"


def ranked(notes, query="deploy staging", **changes):
    return notes.found(query, min_score=0.0, **changes)


def newer(notes, query="deploy staging", **changes):
    """Return path → the notes that supersede it, of the hits."""
    found = notes.search(query, min_score=0.0, **changes).hits
    return {hit.source.path: hit.superseded_by for hit in found}


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "vector"])
@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_the_newer_note_comes_before_the_older_one_and_that_says_so(notes, mode, fusion):
    notes.save({"old.md": OLD, "other.md": OTHER, "new.md": NEW})
    assert ranked(notes, mode=mode, fusion=fusion)[0] == "old.md"
    assert set(newer(notes, mode=mode).values()) == {()}
    notes.save({"new.md": superseding("old.md")})
    assert ranked(notes, mode=mode, fusion=fusion)[:2] == ["new.md", "old.md"]
    assert newer(notes, mode=mode) == {"new.md": (), "old.md": ("new.md",), "other.md": ()}


def test_where_the_newer_note_does_not_match_the_older_one_keeps_its_place_and_says_so(notes):
    notes.save({"old.md": OLD, "other.md": OTHER, "new.md": superseding("old.md")})
    assert newer(notes, "fridays") == {"old.md": ("new.md",)}


@pytest.mark.parametrize("how", ["delete", "edit", "rename"])
def test_the_older_note_comes_back_when_its_successor_is_gone(notes, how):
    notes.save({"old.md": OLD, "other.md": OTHER, "new.md": superseding("old.md")})
    assert ranked(notes)[0] == "new.md"
    if how == "delete":
        notes.remove("new.md")
    elif how == "edit":
        notes.save({"new.md": NEW})
    else:
        notes.write("elder.md", OLD)
        notes.remove("old.md")
        notes.indexer.apply(["elder.md"], budget_s=60)
    assert ranked(notes)[0] == ("elder.md" if how == "rename" else "old.md")
    assert set(newer(notes).values()) == {()}


@pytest.mark.parametrize(
    "name", ["old.md", "notes/old.md", "'[[old]]'", "'[[Older way|x]]'", "0123456789abcdef"]
)
def test_the_older_note_is_named_by_path_name_alias_or_id(notes, name):
    notes.save({"new.md": superseding(name)})
    notes.save({"notes/old.md": f"---\naliases: Older way\nid: 0123456789abcdef\n---\n{OLD}"})
    assert newer(notes)["notes/old.md"] == ("new.md",)
    notes.reopen()
    assert newer(notes)["notes/old.md"] == ("new.md",)


def test_a_name_of_two_notes_supersedes_neither(notes):
    """A path is unambiguous; a guess would demote somebody's note."""
    notes.save({"a/old.md": OLD, "b/old.md": OLD + "More.", "new.md": superseding("old")})
    assert set(newer(notes).values()) == {()}
    notes.remove("b/old.md")
    assert newer(notes)["a/old.md"] == ("new.md",)


def test_of_a_chain_the_newest_is_first_and_named(notes):
    """Even if a middle note does not match; if it is gone, the chain is cut there."""
    notes.save(
        {
            "a.md": OLD,
            "b.md": superseding("a.md"),
            "c.md": superseding("b.md", text=NEWEST),
            "other.md": OTHER,
        }
    )
    assert ranked(notes, "deploy staging") == ["c.md", "b.md", "a.md", "other.md"]
    assert newer(notes) == {"c.md": (), "b.md": ("c.md",), "a.md": ("c.md",), "other.md": ()}
    assert ranked(notes, "fridays robot") == ["c.md", "a.md"]
    notes.remove("c.md")
    assert newer(notes) == {"b.md": (), "a.md": ("b.md",), "other.md": ()}
    notes.remove("b.md")
    assert newer(notes) == {"a.md": (), "other.md": ()}


def test_notes_that_supersede_each_other_demote_each_other_not(notes):
    """A circle changes nothing among its members, and what they supersede is behind both."""
    notes.save({"a.md": OLD, "b.md": NEW, "c.md": OTHER})
    before = ranked(notes)
    notes.save({"a.md": superseding("b.md", "a.md", text=OLD), "b.md": superseding("a.md")})
    assert ranked(notes) == before
    assert set(newer(notes).values()) == {()}
    notes.save({"a.md": superseding("b.md", "c.md", text=OLD)})
    assert ranked(notes) == ["a.md", "b.md", "c.md"]
    assert newer(notes)["c.md"] == ("a.md", "b.md")


def test_the_newest_notes_of_a_filter_know_their_succession(notes):
    notes.save({"2026-05-02.md": OLD, "2026-05-01.md": superseding("2026-05-02.md"), "2026-04-01.md": OTHER})
    assert notes.found("path:*") == ["2026-05-01.md", "2026-05-02.md", "2026-04-01.md"]


def test_without_numpy_the_order_is_the_same(notes, monkeypatch):
    monkeypatch.setattr("memd.search.search.HAS_NUMPY", False)
    notes.save({"old.md": OLD, "other.md": OTHER, "new.md": superseding("old.md")})
    assert ranked(notes) == ["new.md", "old.md", "other.md"]


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_an_explanation_and_why_tell_of_it(notes, mode):
    """The lifted hit has the order of the one whose place it took; both are named."""
    notes.save({"old.md": OLD, "other.md": OTHER, "new.md": superseding("old.md")})
    request = notes.request("deploy staging", min_score=0.0, mode=mode)
    with notes.index.view() as view:
        answer = search(view, request)
        _, reasons = explain(view, answer)
        verdict = why(view, request, view.snapshot.source_at("old.md"), None)
    told = {hit.source.path: one for hit, one in zip(answer.hits, reasons, strict=True)}
    assert (told["new.md"].ahead_of, told["new.md"].superseded_by) == ("old.md", ())
    assert (told["old.md"].ahead_of, told["old.md"].superseded_by) == (None, ("new.md",))
    assert told["new.md"].order == told["old.md"].order > told["new.md"].score
    assert (verdict.stage, verdict.rank) == ("returned", 2)
    assert verdict.explained == told["old.md"]


WORDS = st.lists(st.sampled_from(["heron", "weir", "stork", "mill", "otter"]), min_size=1, max_size=6)
EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=8)


@settings(max_examples=many(25))
@given(texts=st.lists(WORDS, min_size=8, max_size=8), edges=EDGES)
def test_a_higher_limit_only_adds_whoever_supersedes_whom(tmp_path_factory, texts, edges):
    """Every answer is a prefix of the one with a higher limit; who holds comes first wherever both match."""
    notes = Notes(tmp_path_factory.mktemp("n"))
    under = {number: [older for newer, older in edges if newer == number] for number in range(8)}
    notes.save(
        {
            f"{number}.md": superseding(*(f"{older}.md" for older in under[number]), text=" ".join(words))
            for number, words in enumerate(texts)
        }
    )
    whole = ranked(notes, "heron weir otter", limit=50, weights=Weights())
    for limit in range(1, 9):
        assert ranked(notes, "heron weir otter", limit=limit) == whole[:limit]
    first = {path: whole.index(path) for path in whole}
    by = newer(notes, "heron weir otter", limit=50)
    for path, holders in by.items():
        assert all(first[one] < first[path] for one in holders if one in first)
    assert notes.findings() == []
    notes.index.close()


def test_a_note_of_very_many_chunks_supersedes_as_a_short_one(notes, monkeypatch):
    """It is stored in slices, and takes its place at once; it is gone and back again in one piece."""
    for module in ("indexer", "transaction"):
        monkeypatch.setattr(f"memd.index.{module}.STAGED_CHUNKS", 100)  # as 1,000, in less time
    many = "\n\n".join(
        f"# Section {number}\n\n" + "Push a tag to deploy staging. " * 40 for number in range(110)
    )
    notes.save({"old.md": OLD, "new.md": superseding("old.md", text=many)}, embed=False)
    assert newer(notes, "fridays") == {"old.md": ("new.md",)}
    text = (notes.root / "new.md").read_text()
    notes.remove("new.md")
    assert newer(notes, "fridays") == {"old.md": ()}
    notes.save({"new.md": text}, embed=False)
    assert newer(notes, "fridays") == {"old.md": ("new.md",)}


def test_the_check_finds_an_order_that_is_not_what_the_files_say(notes):
    notes.save({"old.md": OLD, "new.md": superseding("old.md")}, embed=False)
    seen = notes.index.snapshot
    notes.index.snapshot = dataclasses.replace(seen, supersession=NOBODY)
    assert notes.findings() == ["published: queries see other notes superseded than the files say"]
    notes.index.publish_again()


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "vector"])
def test_a_conflict_copy_ranks_behind_its_original(notes, mode):
    """Both stay notes, and none is said to supersede the other; without its original a copy is as others."""
    copy = "to (conflicted copy 2026-05-01).md"
    notes.save({copy: OLD, "other.md": OTHER})
    assert ranked(notes, mode=mode)[0] == copy
    notes.save({"to.md": NEW})
    assert ranked(notes, mode=mode)[:2] == ["to.md", copy]
    assert set(newer(notes, mode=mode).values()) == {()}
    notes.reopen()
    assert ranked(notes, mode=mode)[:2] == ["to.md", copy]
    notes.remove("to.md")
    assert ranked(notes, mode=mode)[0] == copy


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
    _, _, [why] = notes.explained("office")
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


def test_without_numpy_what_is_expired_ranks_lower_too(notes):
    notes.save({"closed.md": until("2026-05-01"), "open.md": OPEN})
    with notes.index.view() as view:
        ranked, _ = fallback.candidates(view, notes.request("office manager"))
        assert [one.path for one in lifted(ranked, view.snapshot)[0]] == ["open.md", "closed.md"]


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


@pytest.mark.parametrize("text", ["soon", "'2026-13-01'", "[2026-05-01]", "01/05/2026"])
def test_what_is_not_a_day_is_ignored_with_a_warning(notes, text):
    """`status` shows it; the note holds without end."""
    notes.save({"closed.md": until(text)})
    assert found(notes, today=date(2099, 1, 1)) == {"closed.md": None}
    warned = notes.index.writer.warnings()
    assert warned == {"closed.md": "valid_until is not a day like 2026-05-31, and is ignored"}


@pytest.mark.parametrize(
    ("head", "day"),
    [
        ("validUntil: 31.12.2026", "2026-12-31"), ("Valid-Until: Dec 31, 2026", "2026-12-31"),
        ("title: A\nvalid until: '[[2026-12-31]]'", "2026-12-31"),
        ("expires: 31. Dezember 2026", "2026-12-31"),
        ("expiry_date: 2026/12/31", "2026-12-31"), ("valid_until: May 2026", "2026-05-31"),
        ("valid_until: 2026-Q4", "2026-12-31"), ("expires: never", None), ("expires: 3600", None),
    ],
)  # fmt: skip
def test_a_last_day_is_read_as_any_other_under_each_of_its_keys(notes, head, day):
    """A month counts to its end; what "expires" says elsewhere is no reason to warn."""
    notes.save({"closed.md": f"---\n{head}\n---\n{OFFICE}"})
    with notes.index.view() as view:
        [source] = view.snapshot.sources.values()
    assert source.valid_until == (day and date.fromisoformat(day))
    assert notes.index.writer.warnings() == {}


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
    _, _, [why] = notes.explained("office")
    assert (why.decay.factor < 1, why.decay.dated) == (decays, decays)


LATER_OLD = "---\ndate: 2025-01-10\n---\nThe nightly backup of the shop goes to the NAS.\n"
LATER_NEW = (
    "---\ndate: 2025-06-10\n---\n# Backups\n\nThe nightly backup of the shop moved from the NAS to S3.\n"
)
LATER_OTHER = "---\ndate: 2025-09-10\n---\nThe printer moved from the cellar to the hall, no backup needed.\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("The backup goes to the NAS.", "Intro.\nThe backup moved from the NAS to S3.", 1),
        ("Standup is in the blue room.", "Our standup is no longer in the blue room.", 0),
        ("The server runs Debian 11.", "The server runs Debian 12 instead of Debian 11.", 0),
        ("Invoices are due within 30 days.", "Correction: invoices are due within 14 days.", 0),
        ("Lena leads billing.", "Omar took over billing from Lena.", 0),
        ("Lena leads billing.", "Omar took billing over from Lena.", 0),
        ("The cat eats chicken food.", "The cat doesn't eat the chicken food anymore.", 0),
        ("The cat eats salmon food.", "The cat does not eat the salmon food anymore.", 0),
        ("The backup goes to the NAS.", "The printer moved from the NAS shelf to the hall.", None),
        ("Standup is in the blue room.", "The projector moved from the blue room to the hall.", None),
        ("Standup is at nine.", "Standup took 20 minutes instead of 15.", None),
        ("The rent of the workshop is 640 euros.", "The rent of the flat rose from 900 to 950 euros.", None),
        ("Invoices are due within 30 days.", "Invoices carry the new logo instead of the old one.", None),
        ("The backup goes to the NAS.", "The backup goes to S3.", None),
    ],
)
def test_what_changes_a_statement(old, new, line):
    assert changed_at(old, new) == line


@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_hit_points_to_the_line_that_changes_it(notes, mode):
    """In the order of the scores: a pointer moves nothing."""
    notes.save({"old.md": LATER_OLD, "new.md": LATER_NEW, "other.md": LATER_OTHER})
    hits = notes.search("where does the nightly backup of the shop go", mode=mode, min_score=0.0).hits
    assert [hit.source.path for hit in hits][:2] == ["old.md", "new.md"]
    later = {hit.source.path: hit.later for hit in hits}
    assert later["old.md"] == LaterStatement(path="new.md", line=6, date="2025-06-10")
    assert later["new.md"] is later["other.md"] is None


def test_a_question_for_now_gets_the_newest_statement_first(notes):
    notes.save({"old.md": LATER_OLD, "new.md": LATER_NEW, "other.md": LATER_OTHER})
    query = "where does the nightly backup of the shop go"
    assert notes.found(f"{query} now", min_score=0.0)[0] == "new.md"
    assert notes.found(query, min_score=0.0)[0] == "old.md"


def test_among_nearly_equal_hits_the_newest_is_first_if_it_has_the_same_words(notes):
    text = "---\ndate: {}\n---\nThe standup of team {} meets at {}.\n"
    notes.save(
        {
            "a.md": text.format("2025-01-10", "heron", "nine"),
            "b.md": text.format("2025-02-10", "heron", "ten"),
        }
    )
    notes.save({"c.md": text.format("2025-03-10", "otter", "noon")})
    assert notes.found("when does the standup of team heron currently meet", min_score=0.0)[0] == "b.md"


@pytest.mark.parametrize(
    ("text", "languages", "found"),
    [
        ("who leads it now", (), {"now"}), ("the current rent", (), {"current"}), ("who led it", (), set()),
        ("a che ora parte", ("italian",), set()), ("su faturası", ("turkish",), set()),
        ("wer leitet das jetzt", ("german",), {"jetzt"}), ("wer leitet das jetzt", (), set()),
    ],
)  # fmt: skip
def test_words_that_ask_for_now(text, languages, found):
    assert now_words(text.split(), languages) == found

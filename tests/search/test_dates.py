"""Days as people write them, the notes of that time, the newest ones. Today is Sunday, 22 November 2026."""

import os
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.named_days import named_days
from memd.search.dates import span
from memd.search.filters import Condition
from memd.search.query import parse

TODAY = date(2026, 11, 22)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2026-05-01", "2026-05-01", "2026-05-01"), ("20260501", "2026-05-01", "2026-05-01"),
        ("2026-05", "2026-05-01", "2026-05-31"), ("2024-02", "2024-02-01", "2024-02-29"),
        ("2026-5-1", "2026-05-01", "2026-05-01"), ("2026", "2026-01-01", "2026-12-31"),
        ("2026-W21", "2026-05-18", "2026-05-24"), ("1.5.2026", "2026-05-01", "2026-05-01"),
        ("today", "2026-11-22", "2026-11-22"), ("Yesterday", "2026-11-21", "2026-11-21"),
        ("tomorrow", "2026-11-23", "2026-11-23"), ("the day after tomorrow", "2026-11-24", "2026-11-24"),
        ("last tues", "2026-11-17", "2026-11-17"), ("next fri", "2026-11-27", "2026-11-27"),
        ("2025 may", "2025-05-01", "2025-05-31"), ("2025-mar", "2025-03-01", "2025-03-31"),
        ("May-1-2025", "2025-05-01", "2025-05-01"), ("1-may-2025", "2025-05-01", "2025-05-01"),
        ("the day before yesterday", "2026-11-20", "2026-11-20"),
        ("7d", "2026-11-15", "2026-11-15"), ("2w", "2026-11-08", "2026-11-08"),
        ("3mo", "2026-08-22", "2026-08-22"), ("1y", "2025-11-22", "2025-11-22"),
        ("3 days ago", "2026-11-19", "2026-11-19"), ("two weeks ago", "2026-11-08", "2026-11-08"),
        ("last 7 days", "2026-11-15", "2026-11-15"), ("in 3 days", "2026-11-25", "2026-11-25"),
        ("this week", "2026-11-16", "2026-11-22"), ("last week", "2026-11-09", "2026-11-15"),
        ("last-week", "2026-11-09", "2026-11-15"), ("past week", "2026-11-09", "2026-11-15"),
        ("next week", "2026-11-23", "2026-11-29"), ("this month", "2026-11-01", "2026-11-30"),
        ("last month", "2026-10-01", "2026-10-31"), ("previous month", "2026-10-01", "2026-10-31"),
        ("last year", "2025-01-01", "2025-12-31"), ("friday", "2026-11-20", "2026-11-20"),
        ("last monday", "2026-11-16", "2026-11-16"), ("may", "2026-05-01", "2026-05-31"),
        ("December", "2025-12-01", "2025-12-31"), ("May 2026", "2026-05-01", "2026-05-31"),
        ("may-2027", "2027-05-01", "2027-05-31"), ("1 May", "2026-05-01", "2026-05-01"),
        ("May 1st, 2026", "2026-05-01", "2026-05-01"), ("Fri, 1 May 2026", "2026-05-01", "2026-05-01"),
        ("last quarter", "2026-07-01", "2026-09-30"), ("2025-Q3", "2025-07-01", "2025-09-30"),
        ("next quarter", "2027-01-01", "2027-03-31"), ("next monday", "2026-11-23", "2026-11-23"),
        ("last-weekend", "2026-11-14", "2026-11-15"), ("summer 2025", "2025-06-01", "2025-08-31"),
        ("in March", "2026-03-01", "2026-03-31"), ("last night", "2026-11-21", "2026-11-21"),
        ("yesterday evening", "2026-11-21", "2026-11-21"), ("30d ago", "2026-10-23", "2026-10-23"),
        ("in two months", "2027-01-22", "2027-01-22"), ("fri", "2026-11-20", "2026-11-20"),
        ("märz", "2026-03-01", "2026-03-31"), ("1. mai 2025", "2025-05-01", "2025-05-01"),
        ("letzten montag", "2026-11-16", "2026-11-16"), ("13/05/2026", "2026-05-13", "2026-05-13"),
        ("1.5.26", "2026-05-01", "2026-05-01"), ("31.12.99", "1999-12-31", "1999-12-31"),
        ("1-may-26", "2026-05-01", "2026-05-01"), ("May 1, 26", "2026-05-01", "2026-05-01"),
        ("May '26", "2026-05-01", "2026-05-31"), ("may 26", "2026-05-26", "2026-05-26"),
        ("2026-05-01T10:00:00", "2026-05-01", "2026-05-01"), ("2026-05-01 10:00", "2026-05-01", "2026-05-01"),
    ],
)  # fmt: skip
def test_what_people_write_is_a_span_of_days(text, first, last):
    """Weeks last from Monday to Sunday; "2 weeks ago" is one day; a date without a year is in the past."""
    found = span(text, TODAY)
    assert (found.first.isoformat(), found.last.isoformat()) == (first, last)


@pytest.mark.parametrize(
    ("text", "today", "first"),
    [
        ("last week", "2026-01-01", "2025-12-22"),
        ("this week", "2026-01-01", "2025-12-29"),
        ("last month", "2026-03-31", "2026-02-01"),
        ("1mo", "2026-03-31", "2026-02-28"),
        ("last year", "2024-02-29", "2023-01-01"),
        ("yesterday", "2026-01-01", "2025-12-31"),
        ("monday", "2026-11-23", "2026-11-16"),
    ],
)
def test_spans_reach_over_the_ends_of_months_and_years(text, today, first):
    """A day that does not exist becomes the nearest earlier one."""
    assert span(text, date.fromisoformat(today)).first.isoformat() == first


@pytest.mark.parametrize(
    "text",
    ["", "3.11", "12", "a", "3m", "5pm", "v2", "one", "maybe", "ever", "2026-13", "2026-02-30", "0000-01",
     "99999999d", "01/05/2026", "the release of may or later, whenever that is", "\0", "1/5/26", "1.2.3"],
)  # fmt: skip
def test_what_is_no_day_or_could_be_two_is_none(text):
    """A version, an hour, a day that does not exist, a date that two countries read differently."""
    with pytest.raises((ValueError, OverflowError)):
        span(text, TODAY)


@pytest.mark.parametrize(
    ("typed", "name", "day"),
    [
        ("since:2026-05", "since", "2026-05-01"),
        ("until:2026-05", "until", "2026-05-31"),
        ("after:2026-05", "since", "2026-06-01"),
        ("before:2026-05", "until", "2026-04-30"),
        ('until:"last week"', "until", "2026-11-15"),
        ("since:yesterday", "since", "2026-11-21"),
    ],
)
def test_each_filter_takes_the_end_of_a_span_that_it_means(typed, name, day):
    """That month included, or not; several words in quotes."""
    query = parse(f"heron {typed}", TODAY)
    assert query.text == "heron"
    assert query.filters == (Condition(name, (date.fromisoformat(day),)),)


@given(st.text(alphabet="0123456789-./: abcdehikmnorstuwy", max_size=20))
def test_any_text_is_a_span_or_none(text):
    try:
        found = span(text, TODAY)
    except (ValueError, OverflowError):
        return
    assert found.first <= found.last


NAMED_DAYS_TODAY = date(2026, 5, 20)  # a Wednesday


def read(text, *languages, **settings):
    return [
        f"{one.first} {one.last}{' yearly' * one.is_yearly}"
        for one in named_days(text, NAMED_DAYS_TODAY, languages, **settings)
    ]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what happened on 2023-05-08?", "2023-05-08", "2023-05-08"),
        ("2023/5/8", "2023-05-08", "2023-05-08"), ("8.5.2023", "2023-05-08", "2023-05-08"),
        ("the notes of 2026-05", "2026-05-01", "2026-05-31"),
        ("May 8, 2023", "2023-05-08", "2023-05-08"), ("on 8 May, 2023 it", "2023-05-08", "2023-05-08"),
        ("the 8th of may 2023", "2023-05-08", "2023-05-08"),
        ("on Monday 8 may 2023", "2023-05-08", "2023-05-08"),
        ("what did she buy in March 2023", "2023-03-01", "2023-03-31"),
        ("sept. 2023", "2023-09-01", "2023-09-30"),
        ("Q3 2023", "2023-07-01", "2023-09-30"), ("2023Q3", "2023-07-01", "2023-09-30"),
        ("the third quarter of 2023", "2023-07-01", "2023-09-30"),
        ("last spring", "2025-03-01", "2025-05-31"), ("in the fall of 2022", "2022-09-01", "2022-11-30"),
        ("last May", "2025-05-01", "2025-05-31"), ("last april", "2026-04-01", "2026-04-30"),
        ("on monday", "2026-05-18", "2026-05-18"), ("the Wednesday meeting", "2026-05-13", "2026-05-13"),
        ("yesterday", "2026-05-19", "2026-05-19"), ("the day before yesterday", "2026-05-18", "2026-05-18"),
        ("today", "2026-05-20", "2026-05-20"), ("two days ago", "2026-05-18", "2026-05-18"),
        ("three weeks ago", "2026-04-26", "2026-05-02"), ("the last 7 days", "2026-05-13", "2026-05-20"),
        ("last week", "2026-05-11", "2026-05-17"), ("this month", "2026-05-01", "2026-05-31"),
        ("last month", "2026-04-01", "2026-04-30"), ("last quarter", "2026-01-01", "2026-03-31"),
        ("in 2023", "2023-01-01", "2023-12-31"), ("last year", "2025-01-01", "2025-12-31"),
        ("it was 2023-05-08T10:00", "2023-05-08", "2023-05-08"), ("20230508", "2023-05-08", "2023-05-08"),
        ("2026-W20", "2026-05-11", "2026-05-17"), ("2023 May 8", "2023-05-08", "2023-05-08"),
        ("this spring", "2026-03-01", "2026-05-31"), ("last weekend", "2026-05-16", "2026-05-17"),
        ("last night", "2026-05-19", "2026-05-19"), ("this morning", "2026-05-20", "2026-05-20"),
        ("a few weeks ago", "2026-04-19", "2026-05-09"), ("half a year ago", "2025-08-20", "2026-02-16"),
        ("two quarters ago", "2025-10-04", "2026-01-02"), ("previous month", "2026-04-01", "2026-04-30"),
        ("Friday's standup", "2026-05-15", "2026-05-15"), ("since last oct", "2025-10-01", "2026-05-20"),
        ("in March last year", "2025-03-01", "2025-03-31"),
        ("8 May of last year", "2025-05-08", "2025-05-08"),
        ("in Q3 last year", "2025-07-01", "2025-09-30"), ("May this year", "2026-05-01", "2026-05-31"),
        ("on Monday last week", "2026-05-11", "2026-05-17"),
        ("friday of last week", "2026-05-11", "2026-05-17"),
        ("summer of last year", "2025-06-01", "2025-08-31"),
        ("since March", "2026-03-01", "2026-05-20"), ("since the 8 May", "2026-05-08", "2026-05-20"),
        ("the week before 3 January 2024", "2023-12-27", "2024-01-03"),
        ("since 2025-12-30", "2025-12-30", "2026-05-20"), ("May 1-8, 2023", "2023-05-01", "2023-05-08"),
        ("from 28 December 2025 to 3 January", "2025-12-28", "2026-01-03"),
        ("between November and January 2025", "2024-11-01", "2025-01-31"),
        ("between 2025-12-30 and 2026-01-02", "2025-12-30", "2026-01-02"),
        ("2023年5月8日の会議", "2023-05-08", "2023-05-08"), ("2023년 5월", "2023-05-01", "2023-05-31"),
    ],
)  # fmt: skip
def test_a_time_with_its_year(text, first, last):
    assert read(text) == [f"{first} {last}"]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("8 May", "2026-05-08", "2026-05-08"), ("jun 3", "2025-06-03", "2025-06-03"),
        ("in june", "2025-06-01", "2025-06-30"), ("the May meeting", "2026-05-01", "2026-05-31"),
        ("1 to 8 May", "2026-05-01", "2026-05-08"), ("May 8 – May 10", "2026-05-08", "2026-05-10"),
        ("from November to February", "2025-11-01", "2026-02-28"), ("in dec", "2025-12-01", "2025-12-31"),
        ("in the third quarter", "2025-07-01", "2025-09-30"), ("on may 8 we", "2026-05-08", "2026-05-08"),
        ("during the summer", "2025-06-01", "2025-08-31"), ("29 February", "2024-02-29", "2024-02-29"),
        ("5月の会議", "2026-05-01", "2026-05-31"), ("Q2", "2026-04-01", "2026-06-30"),
    ],
)  # fmt: skip
def test_a_time_without_its_year_is_the_last_one_and_that_of_other_years(text, first, last):
    assert read(text) == [f"{first} {last} yearly"]


@pytest.mark.parametrize(
    "text",
    [
        "may I ask", "May I ask", "Ok. May I ask", "march in step", "March on", "what Jan said",
        "on sun and sea", "next may", "next summer", "the fall of the wall", "how is spring configured",
        "Spring Boot", "on the march",
        "what may 8 people do", "at least 8 may fail", "the first quarter",
        "in the first quarter of a game", "29 Feb 2023", "20231308",
        "RFC 2026", "CVE-2021-44228", "v2.0.2021", "port 2049", "$2023", "31 June", "week 3", "1066",
        "1.2.2026.1", "0.0.2024", "2024-00", "30-2 May 2024",
        "in 2020, 2021, 2022, 2023 and 2024", "yesterday " * 101, "",
    ],
)  # fmt: skip
def test_no_time(text):
    assert read(text) == []


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("german", "am 8. Mai 2023", "2023-05-08 2023-05-08"),
        ("german", "im märz", "2026-03-01 2026-03-31 yearly"),
        ("german", "letzten Montag", "2026-05-18 2026-05-18"),
        ("french", "le 1er mai 2023", "2023-05-01 2023-05-01"),
        ("french", "mai dernier", "2025-05-01 2025-05-31"),
        ("spanish", "el 8 de mayo de 2023", "2023-05-08 2023-05-08"),
        ("portuguese", "na segunda-feira", "2026-05-18 2026-05-18"),
        ("italian", "in agosto", "2025-08-01 2025-08-31 yearly"),
        ("dutch", "vorige maandag", "2026-05-18 2026-05-18"),
        ("swedish", "i maj 2023", "2023-05-01 2023-05-31"),
        ("polish", "w maju", "2026-05-01 2026-05-31 yearly"),
        ("czech", "v květnu", "2026-05-01 2026-05-31 yearly"),
        ("russian", "8 мая 2023", "2023-05-08 2023-05-08"),
        ("turkish", "8 Mayıs 2023'te", "2023-05-08 2023-05-08"),
        ("romanian", "în martie 2023", "2023-03-01 2023-03-31"),
        ("catalan", "el 3 d'abril de 2023", "2023-04-03 2023-04-03"),
        ("swedish", "i torsdags", "2026-05-14 2026-05-14"),
        ("danish", "marts 2023", "2023-03-01 2023-03-31"),
        ("danish", "i mandags", "2026-05-18 2026-05-18"),
        ("norwegian", "i mars", "2026-03-01 2026-03-31 yearly"),
        ("indonesian", "pada agustus", "2025-08-01 2025-08-31 yearly"),
        ("greek", "στις 8 Μαΐου 2023", "2023-05-08 2023-05-08"),
        ("serbian", "u maju", "2026-05-01 2026-05-31 yearly"),
        ("arabic", "في مايو", "2026-05-01 2026-05-31 yearly"),
        ("german", "seit März", "2026-03-01 2026-05-20"),
    ],
)
def test_names_are_read_in_the_languages_of_the_workspace(language, text, found):
    assert read(text, language) == [found]
    assert read("in May 2023", language) == ["2023-05-01 2023-05-31"], "English is read, too"


def test_names_of_other_languages_are_words():
    assert read("im märz") == []


def test_a_winter_named_by_one_year_began_or_ended_then():
    assert read("winter 2023") == ["2023-12-01 2024-02-29", "2022-12-01 2023-02-28"]


def test_seasons_of_the_south():
    assert read("last spring", southern=True) == ["2025-09-01 2025-11-30"]
    assert read("in the summer of 2023", southern=True) == ["2023-12-01 2024-02-29", "2022-12-01 2023-02-28"]


@pytest.mark.parametrize(
    ("text", "day", "share"),
    [
        ("8 May 2026", "2026-05-08", 1.0), ("8 May 2026", "2026-05-07", 0.0),
        ("8 May 2026", "2026-05-09", 6 / 7), ("8 May 2026", "2026-05-15", 0.0),
        ("28 December to 3 January", "2021-01-02", 0.5),
        ("8 May", "2020-05-08", 0.5), ("in December", "2021-01-02", 5 / 14),
        ("in 2023", "2023-07-01", 0.2),
    ],
)  # fmt: skip
def test_the_share_of_a_day(text, day, share):
    [named] = named_days(text, NAMED_DAYS_TODAY)
    assert named.near(date.fromisoformat(day))[0] == pytest.approx(share)


# Ranking

ROW = "We moved the heron to the weir.\n"


@pytest.fixture
def diary(notes):
    notes.save({f"memory/{day}.md": ROW for day in ("2026-02-01", "2026-03-02", "2026-05-30")})
    notes.save({"late.md": f"---\ndate: 2025-08-10\n---\n{ROW}{ROW}", "long.md": "heron weir moved\n"})
    return notes


def explained(notes, query, **changes):
    answer, _, whys = notes.explained(query, **changes)
    return {hit.source.path: why for hit, why in zip(answer.hits, whys, strict=True)}


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
@pytest.mark.parametrize(
    ("query", "path"),
    [("heron weir 2 March 2026", "memory/2026-03-02.md"), ("when was the heron moved in August", "late.md")],
)
def test_notes_of_the_named_time_come_first(diary, fusion, query, path):
    """The score stays, and the explanation says what was added."""
    hits = diary.search(query, mode="hybrid", fusion=fusion, min_score=0.0).hits
    plain = diary.search(query, mode="hybrid", fusion=fusion, min_score=0.0, today=date(2026, 6, 1)).hits
    assert hits[0].source.path == path
    assert {hit.source.path: hit.candidate.score for hit in hits} == {
        hit.source.path: hit.candidate.score for hit in plain
    }
    named = explained(diary, query, mode="hybrid", fusion=fusion, min_score=0.0)[path].day_named
    full = 0.1 if fusion == "weighted" else 0.2 / 61
    assert (named.first <= named.day <= named.last, named.added) == (True, pytest.approx(full))


def test_a_filter_by_days_means_the_filter(diary):
    whys = explained(diary, "heron weir 2 March 2026 since:2026-01-01", mode="hybrid", min_score=0.0)
    assert {why.day_named for why in whys.values()} == {None}


def test_the_day_of_a_copy_is_no_evidence(notes):
    """A clone gives all its files one day; a single note that was changed on another one may be meant."""
    notes.save({f"{name}.md": f"The heron {name} at the weir.\n" for name in ("one", "two", "three")})
    asked = f"heron weir {datetime.now().astimezone().date()}"

    def named():
        found = explained(notes, asked, mode="hybrid", min_score=0.0)
        return {path: why.day_named is not None for path, why in found.items()}

    assert named() == dict.fromkeys(("one.md", "two.md", "three.md"), False)
    for name, at in (("one", 1e9), ("two", 1.1e9)):
        notes.write(f"{name}.md", f"The old heron {name} at the weir.\n")
        os.utime(notes.root / f"{name}.md", (at, at))
        notes.indexer.apply([f"{name}.md"], budget_s=60)
    assert named() == {"one.md": False, "two.md": False, "three.md": True}


@pytest.fixture
def diary_of_newest(notes):
    """Dated notes, some of them with a tag."""
    tagged = "---\ntags: [alpha]\n---\n# The day {0}\n\nFirst of {0}.\n\n# Later\n\nSecond of {0}.\n"
    texts = {f"daily/{day}.md": tagged.format(day) for day in ("2026-05-01", "2026-11-20", "2026-02-03")}
    texts |= {"daily/2026-11-21.md": "No tag at all here.\n", "daily/2026-11-22.md": ""}
    notes.save(texts)
    return notes


def test_the_newest_come_first(diary_of_newest):
    tagged = ["daily/2026-11-20.md", "daily/2026-05-01.md", "daily/2026-02-03.md"]
    assert diary_of_newest.found("tag:alpha") == tagged
    assert diary_of_newest.found("path:daily/") == ["daily/2026-11-21.md", *tagged]
    assert diary_of_newest.found("tag:alpha before:2026-11-20") == tagged[1:]
    assert diary_of_newest.found("tag:alpha", limit=1) == tagged[:1]
    assert "First of" in diary_of_newest.search("tag:alpha").hits[0].chunk.text
    assert diary_of_newest.found("tag:none") == []


def test_the_list_is_sure_and_does_not_depend_on_the_arms(diary_of_newest):
    """Every mode gives the same, with the score 1 and the confidence of a good match."""
    for mode in ("keyword", "hybrid", "vector"):
        answer = diary_of_newest.search("tag:alpha", mode=mode, query_vec=None, min_score=0.9)
        assert [hit.candidate.score for hit in answer.hits] == [1.0, 1.0, 1.0]
        assert answer.confidence == "strong"
    assert diary_of_newest.search("tag:none").confidence == "none"


def test_words_beside_a_filter_are_searched_as_ever(diary_of_newest):
    assert diary_of_newest.search("tag:alpha second").hits[0].candidate.score < 1
    assert diary_of_newest.found("tag:alpha zebra") == []
    assert diary_of_newest.found("") == []


def test_what_is_gone_from_the_disk_is_in_no_list(diary_of_newest):
    (diary_of_newest.root / "daily/2026-11-20.md").unlink()
    assert diary_of_newest.found("tag:alpha", limit=1) == ["daily/2026-05-01.md"]


def test_a_list_goes_on_with_the_next_chunks(notes):
    """What the reader has is left out: of each source the next chunk follows, and in the end none."""
    notes.save({"a.md": "---\ntags: [alpha]\n---\n" + "heron weir\n\n" * 400})
    [first] = notes.search("tag:alpha").hits
    [following] = notes.search("tag:alpha", without=(first.chunk.id,)).hits
    assert following.chunk.id == first.chunk.id + 1
    every = tuple(notes.index.snapshot.columns.source.nonzero()[0].tolist())
    assert notes.found("tag:alpha", without=every) == notes.found("tag:alpha -weir") == []

"""A note or section that is called like the query comes before those that only speak of it."""

from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.index.reader import Reader
from memd.search.called import by_titles, words_of


class Hit(NamedTuple):
    """What `by_titles` reads of a candidate."""

    id: int
    source: int


TALK = {
    f"talk/{n}.md": f"# Talk {n}\n\nRFC 1071, adr 17, velvet harbour, OPS 2210 and Node 18.4.1 {n}.\n"
    for n in range(9)
}
NOTES = TALK | {
    "rfc/rfc1071.md": "# Computing the checksum\n\nOf packets.\n",
    "rfc/rfc1072.md": "# Extensions\n\nRFC 1071, RFC 1071: it is not.\n",
    "adr/0017-use-sqlite.md": "# Use one file\n\nDecided.\n",
    "adr/0170-use-sqlite.md": "# Use a server\n\nNot adr 17.\n",
    "OPS-2210.md": "# The outage of March\n\nText.\n",
    "2024-02-29.md": "Rain.\n",
    "february.md": "# Months\n\nFebruary 2024, 29 days, February 29.\n",
    "harbour.md": "# Velvet harbour\n\nNothing else.\n",
    "alias.md": "---\naliases: [Copper kettle]\n---\n\n# Pots\n\nText.\n",
    "kettle.md": "# Kettles\n\nThe copper kettle, a copper kettle of copper: kettle.\n",
    "node.md": "# Node 18.4.1\n\nReleased.\n",
    "node2.md": "# Node 18.4\n\nNode 18.4.1 follows, Node 18.4.1.\n",
    "issues/0118-login.md": "# The login fails\n\nText.\n",
    "issues/0119-slow.md": "# Slow\n\nAs 118, 118.\n",
    "journals/2023_02_14.md": "- Snow.\n",
    "2023-05-11 budget.md": "Money.\n",
    "20230512 weir.md": "Water.\n",
    "days.md": "# Days\n\n2023-05-11, 14 February 2023, February 14, 29. Februar 2024, 20240229.\n",
    "river.md": "# La rivière bleue\n\nOf water.\n",
    "launch.md": "# 🚀 Launch plan\n\nIn May.\n",
    "corner.md": "---\naliases: Kaffee-Ecke\n---\n\n# Break\n\nText.\n",
    "leaves.md": '# "Green" leaves\n\nOf trees.\n',
    "new.md": "# What's new?\n\nLittle.\n",
    "told.md": "# Told\n\nLa rivière bleue, la rivière bleue; my launch plan, launch plan; kaffee ecke, "
    "Kaffee Ecke; \"green\" leaves, 'green' leaves. Whats new? Whats new?\n",
    "law.md": "# Book 2\n\nOf sales.\n\n## § 433 Duties of the seller\n\nHe hands over.\n\n"
    "## Article 12\n\nText.\n",
    "law2.md": "# Comments\n\n§ 433, § 433 and article 12, article 12 of it: § 433.\n",
    "long.md": "# Long\n\nstart_at start_at start_at is there.\n\n"
    + "and so on " * 250
    + "\n\n## `start_at`\n\nA moment.\n",
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("RFC 1071", ("rfc", "1071")), ("rfc0017", ("rfc", "17")), ("Node 18.4.1", ("node", "18.4.1")),
        ("v2.1 of API v2", ("2.1", "of", "api", "2")), ("L'Été ÄÖ", ("l", "ete", "ao")),
        ("0017-use_sqlite", ("17", "use", "sqlite")), ("000", ("0",)),
    ],
)  # fmt: skip
def test_numbers_are_words_of_a_name(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("RFC 1071", "rfc/rfc1071.md"), ("what does RFC 1071 say", "rfc/rfc1071.md"),
        ("rfc 1072", "rfc/rfc1072.md"),
        ("ADR 17", "adr/0017-use-sqlite.md"), ("ADR 0170", "adr/0170-use-sqlite.md"),
        ("OPS-2210", "OPS-2210.md"),
        ("OPS-2210.md", "OPS-2210.md"), ("2024-02-29", "2024-02-29.md"),
        ("29 February 2024", "2024-02-29.md"), ("February 29, 2024", "2024-02-29.md"),
        ("velvet harbour", "harbour.md"),
        ("where is the velvet harbour", "harbour.md"), ("copper kettle", "alias.md"),
        ("Node 18.4.1", "node.md"),
        ("Node v18.4", "node2.md"), ("start_at", "long.md"), ("#118", "issues/0118-login.md"),
        ("29. Februar 2024", "2024-02-29.md"), ("20240229", "2024-02-29.md"),
        ("14 February 2023", "journals/2023_02_14.md"), ("2023-05-11", "2023-05-11 budget.md"),
        ("12 May 2023", "20230512 weir.md"),
        ("la riviere bleue", "river.md"), ("where is my launch plan", "launch.md"),
        ("kaffee ecke", "corner.md"), ("whats new", "new.md"), ('"Green" leaves', "leaves.md"),
 ("§ 433", "law.md"), ("article 12", "law.md"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_what_is_called_so_is_first(indexed_once, fusion, query, path):
    notes = indexed_once(NOTES)
    hits = notes.search(query, mode="hybrid", fusion=fusion).hits
    assert hits[0].source.path == path
    assert hits[0].candidate.order >= 1.5, "its name decided"


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
@pytest.mark.parametrize(
    ("query", "day"),
    [
        ("yesterday", 31), ("what did I do yesterday", 31), ("what happened 3 days ago?", 29),
        ("what did we do last Friday", 29), ("the notes of yesterday", 31),
    ],
)  # fmt: skip
def test_a_question_for_a_day_alone_calls_the_note_of_that_day(indexed_once, query, day, mode):
    """Today is 1 June 2026, a Monday; another word asks for what it means, whenever that was."""
    diary = {f"journal/2026-05-{n}.md": f"Rain, {n - 20} times.\n" for n in range(25, 32)}
    talk = "What I did yesterday, on Friday, what happened 3 days ago: notes of last Friday, yesterday.\n"
    notes = indexed_once(diary | {"journal/2026-06-01.md": talk, "a.md": talk, "b.md": "A heron came.\n"})
    assert notes.found(query, mode=mode)[0] == f"journal/2026-05-{day}.md"
    assert notes.found(f"heron {query}", mode=mode)[0] != f"journal/2026-05-{day}.md"


JOURNAL = {
    "journal.md": "# Journal\n\n## 2026-05-01\n\nRain.\n\n## Friday, 3 July 2026\n\nSun.\n\n"
    "## July 4th, 2026: roof\n\nWind.\n\n## 5. Mai 2026\n\nSnow.\n\n"
    "## Day 6 (20260506)\n\nIce.\n",
    "weir.md": "# Weir\n\nBuilt on 2026-05-02, of stone.\n",
} | {f"{n}.md": f"May 1, 2, 3, 4 or 5, or July, of 2026 or 2027: plan {n}.\n" for n in range(1, 9)}


@pytest.mark.parametrize(
    ("query", "path", "line"),
    [
        ("1 May 2026", "journal.md", 3), ("what did I do on 1 May 2026", "journal.md", 3),
        ("2026-07-03", "journal.md", 7), ("4 July 2026", "journal.md", 11), ("2026-05-05", "journal.md", 15),
        ("6 May 2026", "journal.md", 19),
        ("May 2, 2026", "weir.md", 3),
    ],
)  # fmt: skip
def test_a_day_in_a_heading_or_a_text_is_found_however_it_is_written(indexed_once, query, path, line):
    hit = indexed_once(JOURNAL).search(query, mode="hybrid", languages=("german",)).hits[0]
    assert (hit.source.path, hit.snippet.match_line) == (path, line)


def test_a_day_that_most_notes_have_raises_none_of_them(notes):
    notes.save({f"{n}.md": f"Made on 2026-05-07, as number {n}.\n" for n in range(60)})
    notes.save({"day.md": "2026-05-07, 2026-05-07 again and once more 2026-05-07.\n"})
    assert notes.found("2026-05-07", mode="keyword")[0] == "day.md"


PEOPLE = {
    "Liam Ohm.md": "Likes jazz.\n",
    "Tea log.md": "Green, each day.\n",
    "oz.md": "# José Núñez\n\nRows.\n",
    **{f"log/{n}.md": f"Liam, Ohm, José Núñez and a tea: Liam Ohm {n}, a log of tea.\n" for n in range(9)},
    "unit.md": "The resistance is in ohms; Liam measures it.\n",
}


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("Lam Ohm", "Liam Ohm.md"), ("liam omh", "Liam Ohm.md"), ("Tae log", "Tea log.md"),
        ("Jos Nunez", "oz.md"), ("tea lof", "Tea log.md"),
    ],
)  # fmt: skip
def test_a_name_with_an_edit_in_a_short_word_is_still_one(indexed_once, query, path):
    notes = indexed_once(PEOPLE)
    assert notes.found(query, mode="hybrid")[0] == path
    called = notes.search("liam ohms", mode="hybrid").hits
    assert all(one.candidate.order < 1.5 for one in called), "a word of a note is no typo"


SIGNS = {
    "c.md": "# C\n\nPlain C; the net of tax is 1 to 2 of c, C, C. A net, F F 2 1.\n",
    "C++.md": "# Notes on it\n\nTemplates.\n",
    "course.md": "# Courses\n\nWe had a course in C# last autumn, after one in C++.\n",
    "key.md": "# Ideas\n\nThe library in F# is small; the key is F sharp.\n",
    "shell.md": "# Shell\n\nRun make 2>&1 and keep the errors.\n",
    "tool.md": "# Windows\n\nThe tool needs .NET of some age to run; 2 and 1.\n",
}


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("C++", "C++.md"), ("C#", "course.md"), ("F#", "key.md"), (".NET", "tool.md"), ("2>&1", "shell.md"),
        ("C", "c.md"),
    ],
)  # fmt: skip
def test_a_name_in_signs_is_no_name_without_them(indexed_once, query, path):
    assert indexed_once(SIGNS).found(query, mode="keyword")[0] == path


def test_a_section_that_is_called_so_comes_before_what_speaks_of_it(indexed_once):
    notes = indexed_once(NOTES)
    assert "A moment" in notes.search("start_at", mode="hybrid").hits[0].chunk.text


def test_a_section_about_a_name_follows_the_one_called_so_and_precedes_lists(notes):
    filler = [f"The field {n} tells of tides and ropes.\n" for n in range(40)]
    about = "# Fields\n\n## When\n\nSet restart_policy before a start; restart_policy is read once.\n"
    listed = "# All\n\n" + "".join(f"- field_{n}\n" for n in range(30)) + "- restart_policy\n- last_one\n"
    own = "# Options\n\n## `restart_policy`\n\nAlways or never.\n"
    notes.save({f"{n}.md": text for n, text in enumerate(filler)})
    notes.save({"about.md": about, "list.md": listed, "own.md": own})
    assert notes.found("restart_policy", mode="hybrid")[:3] == ["own.md", "about.md", "list.md"]


def test_titles_lead_where_sources_alone_are_known(indexed_once):
    """As in the search of a team's store."""
    notes = indexed_once(NOTES)
    for query, path in {
        "velvet harbour": "harbour.md",
        "RFC 1071": "rfc/rfc1071.md",
        "OPS-2210": "OPS-2210.md",
    }.items():
        answer = notes.search(query, mode="keyword", limit=50)
        names = {hit.source.id: (hit.source.title, hit.source.path) for hit in answer.hits}
        called = by_titles(
            query, answer.judged.keyword.words, [hit.candidate for hit in answer.hits], names.get
        )
        best = max(called, key=lambda one: called[one].added)
        assert next(hit.source.path for hit in answer.hits if hit.candidate.id == best) == path


WORDS = st.lists(st.sampled_from(["git", "end", "17", "0017", "don't", "the"]), min_size=1, max_size=5)


@given(WORDS, st.integers(0, 3), st.lists(st.sampled_from([0.0, 1.0, 1.5]), min_size=9, max_size=9))
def test_titles_that_are_passed_over_unread_name_nothing(asked, start, idf):
    """Whatever the words weigh."""
    query, names = " ".join(asked), {1: (" ".join(asked[start:]), "a/x.md")}
    terms = [
        SimpleNamespace(text=word, idf=weight) for word, weight in zip(words_of(query), idf, strict=False)
    ]
    found = [by_titles(query, terms, [Hit(1, 1)], names.get, named) for named in ({}, {1: False})]
    assert found[0] == found[1]


@pytest.mark.parametrize(("title", "query"), [("Où", "ou"), ("I'M", "im"), ("王の塔", "王の塔")])
def test_a_name_of_one_word_is_known_by_its_letters_alone(notes, title, query):
    notes.save({"short.md": f"# {title}\n\nText.\n"})
    assert by_titles(query, (), [Hit(1, 1)], notes.index.snapshot.named)[1].how == "whole"


@pytest.mark.parametrize(
    ("title", "query"),
    [("Git", "how does git rebase a branch"), ("The end", "velvet sky at the end of harbour streets")],
)
def test_a_name_of_one_word_or_of_little_weight_does_not_lead(notes, title, query):
    notes.save(TALK | {"short.md": f"# {title}\n\nText.\n"})
    assert all(hit.candidate.order < 1.5 for hit in notes.search(query, mode="hybrid").hits)


def test_a_filter_keeps_out_what_is_called_so(indexed_once):
    notes = indexed_once(NOTES)
    assert "alias.md" not in notes.found("copper kettle path:talk", mode="hybrid")


@pytest.mark.parametrize("name", ["--pre", "restart_policy", "Get-Process", "about_Arrays", "memd.search"])
def test_a_name_with_its_signs_comes_before_its_words(notes, name):
    """Also where more chunks have it than a name may have."""
    words = name.replace("-", " ").replace("_", " ").replace(".", " ").strip()
    notes.save(
        {f"a/{n}.md": f"# Page {n}\n\n{words}, {words} {words}: {n}.\n" for n in range(9)}
        | {
            f"b/{n}.md": f"# Part {n}\n\nAmong many other things `{name}`, and so on, {n}.\n"
            for n in range(5)
        }
    )
    assert {path[0] for path in notes.found(name, mode="hybrid")[:5]} == {"b"}


@pytest.mark.parametrize("query", ["velvet harbour", "RFC 1071", "start_at"])
def test_what_only_means_something_like_a_name_does_not_follow_it(indexed_once, query):
    """Unless a floor is named, as the nearest are asked for."""
    notes = indexed_once(NOTES)
    vector = notes.embedder.embed_query("copper kettle of pots")
    asked = {"mode": "hybrid", "query_vec": vector, "limit": 50, "per_source": 9}
    short = notes.search(query, **asked)
    assert all(hit.candidate.keyword_score or hit.candidate.order >= 1.5 for hit in short.hits)
    every = notes.search(query, **asked, min_score=0.0, is_floor_named=True)
    assert len(every.hits) > len(short.hits)


def test_a_title_wins_without_numpy_too(indexed_once, monkeypatch):
    notes = indexed_once(NOTES)
    monkeypatch.setattr("memd.search.search.HAS_NUMPY", False)
    for query, path in {"velvet harbour": "harbour.md", "copper kettle": "alias.md"}.items():
        assert notes.found(query, mode="keyword")[0] == path


def test_of_two_copies_the_one_that_is_named_is_shown(notes):
    text = "A list of what the harbour master said of tides and ropes and boats. " * 8
    notes.save({"a/2021-06-02.md": text, "a/2021-06-03.md": text, "b/tide list.md": text} | TALK)
    for query, path in {
        "2021-06-02": "a/2021-06-02.md",
        "2021-06-03": "a/2021-06-03.md",
        "tide list": "b/tide list.md",
    }.items():
        assert notes.found(query, mode="hybrid")[0] == path


def test_the_heading_that_is_called_so_is_named_among_short_sections(notes):
    text = "# Keys\n\nSee restart_policy.\n\n## restart_policy\n\nAlways.\n\nstop_at\n-------\n\nNever.\n"
    notes.save({"keys.md": text})
    for name, line in {"restart_policy": 5, "stop_at": 9}.items():
        (hit,) = notes.search(name, mode="keyword").hits
        assert (hit.snippet.match_line, hit.heading) == (line, f"Keys > {name}")


def test_a_heading_without_words_is_called_nothing(notes):
    """As a template leaves it."""
    notes.save({"a.md": "# \n\n##  \n\nThe weir.\n"})
    assert notes.found("weir", mode="keyword") == ["a.md"]


def test_only_texts_with_each_word_of_a_query_are_read_for_its_heading(notes, monkeypatch):
    """But for one with a number, which a heading may write otherwise: RFC1071."""
    notes.save(TALK | {"pots.md": "# Pots\n\nOf all kinds.\n\n## Velvet pots 2\n\nText.\n"})
    read, chunks = [], Reader.chunks
    monkeypatch.setattr(Reader, "chunks", lambda self, ids: read.append(len(ids)) or chunks(self, ids))
    for query, texts in {"velvet pots": 1, "velvet pots 2": len(TALK) + 1}.items():
        del read[:]
        assert notes.found(query, mode="keyword")[0] == "pots.md"
        assert read[0] == texts


def test_a_word_and_its_number_among_many_words_name_no_note(notes):
    said = "# Monocytes\n\nTriggering of receptors on monocytes reduces the IL-10 production of monocytes.\n"
    notes.save({"il.md": "# IL-10 in mice\n\nNothing else.\n", "said.md": said})
    claim = "triggering receptors on monocytes reduces IL-10 production"
    assert notes.found(claim, mode="keyword")[0] == "said.md"
    assert notes.found("IL-10", mode="keyword")[0] == "il.md"

"""A query's parts: words, operators that are none, telephone numbers, globs."""

import fnmatch
import posixpath
import random
import time
from datetime import date

import pytest
from tests_support import many

from memd.errors import InvalidError
from memd.search import globs
from memd.search.filters import Condition
from memd.search.keyword import with_held_phrases
from memd.search.query import content_words, parse
from memd.search.search import begin, search


@pytest.mark.parametrize(
    ("raw", "pieces", "excluded", "is_only_excluded"),
    [
        ("breast cancer gene", "breast cancer gene", (), False),
        ('pasta -tomato -"olive oil"', "pasta", ("tomato", "olive oil"), False),
        ("foo-bar", "foo bar", (), False),
        ("since:yesterday", "since yesterday", (), False),
        ("-neg", "neg", (), True),  # it is looked for after all
        ("weir -heron", "weir", ("heron",), False),
        ("weir \u2212heron \u2013\u201egrey owl\u201c 5 \u2013 3", "weir 5 3", ("heron", "grey owl"), False),
        ("-heron tag:x", "", ("heron",), False),
    ],
)
def test_words_are_looked_for_or_excluded(raw, pieces, excluded, is_only_excluded):
    query = parse(raw)
    assert (query.pieces, query.excluded, query.only_excluded) == (
        tuple(pieces.split()), excluded, is_only_excluded,
    )  # fmt: skip


@pytest.mark.parametrize("quotes", ['""', "“”", "„“", "«»"])
def test_a_quoted_phrase_is_required_and_read(quotes):
    query = parse(f"notes {quotes[0]}status code{quotes[1]} page")
    assert query.phrases == ("status code",)
    assert query.text == "notes status code page"


@pytest.mark.parametrize(
    "raw",
    ["lsof -i", "rm -rf tmp", "rm -rf, then", "kill -9", "-j4 make", "head -n10", "find --name", "a -X. B"],
)
def test_a_flag_of_a_command_is_a_word(raw):
    """One or two letters of ASCII, a number, and whatever begins with two signs."""
    query = parse(raw)
    assert (query.excluded, query.words) == ((), tuple(raw.split()))


@pytest.mark.parametrize("word", ["foo", "foo-bar", "C++", "é", "会", "会議", "ab_"])
def test_another_word_with_a_minus_is_excluded_wherever_it_stands(word):
    """Three letters or more, or none of ASCII; at the beginning, too."""
    assert parse(f"x -{word}").excluded == parse(f"-{word} x").excluded == (word,)


def test_a_minus_that_the_notes_know_is_no_operator():
    """The caller of the parser decides; then the word or phrase is searched."""
    asked: list[str] = []
    query = parse('find -name -"a b" -i', excludes=lambda typed: bool(asked.append(typed)))
    assert asked == ["-name", '-"a b"']
    assert (query.words, query.phrases, query.excluded) == (("find", "-name", "-i"), ("a b",), ())


def test_filters_are_taken_out_of_the_words():
    query = parse('deploy path:ops/** tag:prod since:2026-01-02 until:"2026-03-04"')
    assert query.text == "deploy"
    assert query.filters == (
        Condition("path", ("ops/**",)),
        Condition("tag", ("prod",)),
        Condition("since", (date(2026, 1, 2),)),
        Condition("until", (date(2026, 3, 4),)),
    )


@pytest.mark.parametrize(
    "raw", ["a:b", "C++", "20.04", '"open', "AND", "*", "(", "NEAR(a b)", "a OR", "^x", "{a}:b"]
)
def test_operators_of_fts5_are_words(raw):
    query = parse(raw)
    assert (query.phrases, query.excluded, query.filters) == ((), (), ())


def test_stop_words_go_unless_nothing_else_is_left():
    """The question's function words are no content, but "to be or not to be" is all there is."""
    assert content_words(("run", "the", "analysis")) == ("run", "analysis")
    assert content_words(("to", "be")) == ("to", "be")


@pytest.mark.parametrize(
    ("typed", "as_words"),
    [
        ("heron AND weir", ("AND",)), ("heron NOT weir OR pond", ("NOT", "OR")), ("heron and weir", ()),
        ("NOT", ()), ("heron since:whenever", ("since:whenever",)), ("heron since:2026-01-01", ()),
        ("since: heron", ("since:",)), ("heron before:", ("before:",)),
        ("since: 2026-01-01 heron", ("since:",)), ("heron: a bird", ()),
    ],
)  # fmt: skip
def test_operators_of_others_and_days_that_are_none(typed, as_words):
    assert parse(typed, date(2026, 6, 10)).as_words == as_words


def test_a_phrase_that_no_note_has_is_its_words(notes):
    notes.save({"a.md": "The quick fox\n", "b.md": "A brown fox\n"})
    assert notes.found('"quick fox"', mode="keyword") == ["a.md"]
    with notes.index.view() as view:
        query = with_held_phrases(view, parse('"fox brown" "quick fox"'))
    assert (query.phrases, query.as_words) == (("quick fox",), ('"fox brown"',))


NOTES = {
    "plumber.md": "# Plumber\n\nCall (030) 987 65 43 in the morning.\n",
    "dentist.md": "# Dentist\n\nThe number is 0401234567, ask for Ann.\n",
    "bakery.md": "# Bakery\n\n+49 (0)69 11 22 33 44\n",
    "probe.md": "# Probe\n\nThe sensor TP 571 writes UTF-8.\n",
    "audit.md": "# Audit\n\nAs iso27001 says, for the TP of harbour 4.\n",
    "network.md": "# Network\n\nThe todo: printer aabbccddee0f, max_retry_count.\n",
    "parts.md": "# Parts\n\n030 of 987, then 65 and 43; 040, 123, 45 and 67\n",
}


def found(notes, query, mode):
    with notes.index.view() as view:
        prepared, words = begin(view, notes.request(query, mode=mode), notes.embedder.tokenizer)
        return [hit.source.path for hit in search(view, prepared, words).hits]


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("0309876543", "plumber.md"), ("030/987-65-43", "plumber.md"), ("(030) 987 65 43", "plumber.md"),
        ("+49 30 9876543", "plumber.md"), ("who is 030 9876543", "plumber.md"),
        ('"987 65 43"', "plumber.md"), ("(040) 123 45 67", "dentist.md"), ("0049 40 1234567", "dentist.md"),
        ("tp571", "probe.md"), ("TP571 failed?", "probe.md"), ("utf8", "probe.md"), ("ISO 27001", "audit.md"),
        ("what ISO-27001 says", "audit.md"),
        ("06911223344", "bakery.md"), ("069 / 11 22 33 44", "bakery.md"), ("+496911223344", "bakery.md"),
        ("aa:bb:cc:dd:ee:0f", "network.md"), ("to-do", "network.md"), ("maxRetryCount", "network.md"),
    ],
)  # fmt: skip
def test_in_groups_and_in_one_piece(indexed_once, query, path):
    notes = indexed_once(NOTES)
    assert found(notes, query, "keyword")[:1] == [path]
    assert path in found(notes, query, "hybrid")


def test_a_number_that_no_note_has_is_searched_by_its_groups(indexed_once):
    notes = indexed_once(NOTES)
    assert set(found(notes, "(030) 987 65 99", "keyword")) == {"parts.md", "plumber.md"}


PARTS = [
    *(
        "a", "b", "*", "**", "?", "[ab]", "[!a]", "[z-a]", "[!z-a]", "[a", "]", "/", ".", "é", "(?>",
        "(?!)", "(",
    ),
    *("^", "[^a]", "[\\d]", "[a-]", "&&", "[a&&b]", "[a||b]", "[a~~b]", "\n", "[--a]", "[]]", "[!]]"),
]  # fmt: skip
NAMES = [*"abé/.\\][(?>)!^-&d\n$z|"]


def test_a_glob_matches_what_fnmatch_matches_and_what_is_in_a_folder_of_its_name():
    """Whatever is in it, in thousands of them; RE2 has no word for a few, and those are refused."""
    chance = random.Random(20260101)
    refused, count = 0, many(20_000)
    for _ in range(count):
        glob = "".join(chance.choices(PARTS, k=chance.randint(1, 6)))
        path = "".join(chance.choices(NAMES, k=chance.randint(1, 6)))
        plain = posixpath.normpath(glob.strip("/"))
        is_in = plain in {".", path} or path.startswith(f"{plain}/")
        wanted = is_in or fnmatch.fnmatchcase(path, plain)
        try:
            assert globs.matching((glob,))(path) is wanted, (glob, path)
        except InvalidError:
            refused += 1
    assert refused < count / 20  # of "(?" in brackets, mostly


def test_any_of_several_globs_suffices():
    """Both Unicode forms of a letter with an accent are equal."""
    matches = globs.matching(("./a/*.md", "cafe\u0301/"))
    assert matches("a/x.md")
    assert matches("caf\u00e9/x.txt")
    assert not matches("b/x.md")


@pytest.mark.parametrize("glob", ["*a" * 8 + "b", "**/a/" * 20 + "b", "?" * 500 + "*" + "?" * 500])
def test_no_glob_takes_long(glob):
    """Names that a backtracking engine would need hours for are judged at once."""
    started = time.process_time()
    assert not globs.matching((glob,))("a/" * 60 + "a" * 250)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("paths", [("x" * 1025,), ("x",) * 501, ("[a[[:b:]]",)])
def test_what_cannot_be_matched_is_refused(paths):
    """Too long, too many, or nothing that RE2 can compile."""
    with pytest.raises(InvalidError, match="path: "):
        globs.matching(paths)


def test_a_search_whose_globs_take_too_long_is_given_up(monkeypatch):
    """Each name may take some milliseconds, and a workspace has many names."""
    monkeypatch.setattr(globs, "MAX_SEARCH_S", 0.1)
    matches = globs.matching(tuple(f"*a{'?' * 14}z{number}" for number in range(100)))
    chance = random.Random(1)
    names = ("".join(chance.choices("ab", k=250)) for _ in range(5000))
    started = time.thread_time()
    with pytest.raises(InvalidError, match="took over"):
        list(map(matches, globs.patient(names)))
    assert time.thread_time() - started < 20

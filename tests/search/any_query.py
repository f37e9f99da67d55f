"""Generated queries, and what became of them: any text, as a query, means its words and nothing else.

The notes are few and known word by word, so `any_query_model` says for each query which of them answer: one
that injected an operator, swallowed a word or matched everything would differ from the model.
"""

import random
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import chain

from search.any_query_model import HUGE, Note, bare, expected_of
from tests_support import Notes

from memd.search.keyword import with_held_phrases
from memd.search.score import judge

NOTES = 48
FIRST_DAY = date(2026, 1, 1)
# Words of the notes: what is an operator elsewhere, in FTS5 or SQL, among them.
WORDS = (
    *("heron", "weir", "alpha", "beta", "near", "not", "or", "and", "words", "text", "rank", "col", "match"),
    *("select", "drop", "table", "chunks", "null", "like", "escape", "union", "bm25", "v2", "x100", "résumé"),
    *("straße", "йод", "λόγος", "שלום", "كتاب", "दुनिया"),
)  # fmt: skip
RUNS = ("会議", "議会室", "データベース", "회의를", "ปลาทู", "会")
ABSENT = ("zebra", "giraffe", "qqq", "象", "キリン", "слон", "zzzz9")
SIGNS = tuple("\"'`(){}[]*^+-~:;,|&!?%_\\<>/=@#$.")
SYNTAX = (
    *("AND", "OR", "NOT", "NEAR", "NEAR(", "NEAR/2", "near(heron weir, 3)", "And", "nOt", "oR", "words:"),
    *("text :", "rank:", "rowid:", "{words text}:", "- words:", "heron*", "^heron", '"heron"*', "a+b"),
    *("words MATCH 'x'", "' OR 1=1 --", "'; DROP TABLE chunks; --", "/* x */", "?1", ":name", "x'00'"),
    *("*", "%", "\\%", "%_\\", "100%", "LIKE '%'", "ESCAPE '\\'", "GLOB '*'", "<b>", "&amp;"),
    *("\\u0000", "(heron OR", "weir)"),
)  # fmt: skip
ODD = (
    *("\0", "\x01", "\x1a", "\x7f", "\ud800", "\udfff", "\udc80", "\ufffe", "\uffff", "\ufffd", "\U0010ffff"),
    *("\u0301", "\u0308\u0301", "\u3099", "\u093c", "\u0e49", "\u20e3", "\ufe0f", "\u200d", "\u200c"),
    *("\u200b", "\u202e", "\u200f", "\u2066", "\u2069", "\u061c", "\ufeff", "\u00ad", "\u034f", "\u2028"),
    *("👩‍👩‍👧‍👦", "🏳️‍🌈", "🇪🇺", "1️⃣", "👍🏽", "🦩", "❤️", "\U000e0041", "\ue000", "\U000f0000", "ﷺ"),
    *("㍿", "ǆ", "ß", "\u00a0", "\u3000"),
)  # fmt: skip
OWN = (
    *('"heron weir"', '"会議"', '-"alpha beta"', "-heron", "-会議", "path:a", "path:b/n*", "tag:even"),
    *("since:2026-01-20", "until:2026-02-01", "after:2026-01-30", "before:2026-01-10", "path:"),
    *("tag:", "-rf", "-x", "-9", "-n10,", "since:today", '"', "--heron", '-"', '""'),
)  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """The results of a run of queries."""

    asked: Counter[str] = field(default_factory=Counter)  # by kind
    answered: Counter[str] = field(default_factory=Counter)  # with a hit, by kind
    faults: list[str] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)


def filled(notes: Notes, seed: int = 1) -> list[Note]:
    """Save the known notes; return the model's facts about them."""
    draw = random.Random(seed)
    known, texts = [], {}
    for number in range(NOTES):
        day = FIRST_DAY + timedelta(days=number)
        path = f"{'ab'[number % 2]}/n{number}q.md"
        parts = [*draw.sample(WORDS, draw.randint(2, 6)), *draw.sample(RUNS, draw.randint(0, 2))]
        draw.shuffle(parts)
        tags = ("even",) if number % 2 == 0 else ()
        texts[path] = f"---\ncreated: {day}\ntags: [{', '.join(tags)}]\n---\n{' '.join(parts)}\n"
        words = (f"n{number}q", *str(day).split("-"), *tags, *map(bare, parts))  # values of the head, too
        known.append(Note(path, day, tags, words))
    notes.save(texts)
    return known


def run(notes: Notes, known: list[Note], count: int, seed: int) -> Outcome:
    """Ask *count* queries; each must be answered with exactly the notes that the model returns."""
    outcome = Outcome()
    for kind, raw in queries(count, seed):
        outcome.asked[kind] += 1
        started = time.perf_counter()
        try:
            found = answered(notes, raw)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            outcome.faults.append(f"{kind}: {raw[:200]!r} raised {error!r:.200}")
            continue
        outcome.took_ms.append(1000 * (time.perf_counter() - started))
        outcome.answered[kind] += bool(found)
        expected = expected_of(known, raw)
        if found != expected:
            wrong = f"not {sorted(expected - found)[:3]}, wrongly {sorted(found - expected)[:3]}"
            outcome.faults.append(f"{kind}: {raw[:200]!r} found {wrong}")
    return outcome


def answered(notes: Notes, raw: str) -> set[str]:
    """Return every note that a query finds by its words, before any cut; the whole search runs, too."""
    notes.search(raw, mode="hybrid" if len(raw) % 8 == 0 else "keyword", limit=1 + len(raw) % 5)
    with notes.index.view() as view:
        asked = notes.request(raw, mode="keyword")
        asked = replace(asked, query=with_held_phrases(view, asked.query))  # as `begin` does
        judged = judge(view, asked, lambda _: None)
        return {candidate.path for candidate in judged.candidates}


# What is asked


def queries(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield *count* queries with their kind."""
    draw = random.Random(seed)
    kinds = list(MAKERS)
    weights = [weight for _, weight in MAKERS.values()]
    for kind in draw.choices(kinds, weights, k=count):
        yield kind, MAKERS[kind][0](draw)


def _mixed(*sources: tuple[str, ...], most: int = 7) -> Callable[[random.Random], str]:
    def draw_some(draw: random.Random) -> str:
        parts = (draw.choice(draw.choice(sources)) for _ in range(draw.randint(1, most)))
        return "".join(chain.from_iterable((part, draw.choice(("", " ", " ", "\n"))) for part in parts))

    return draw_some


_plain = _mixed(WORDS, RUNS)
_syntax = _mixed(SYNTAX, SYNTAX, SIGNS, WORDS, RUNS)
_odd = _mixed(ODD, WORDS, RUNS)
_everything = _mixed(WORDS, RUNS, ABSENT, SYNTAX, SIGNS, ODD, OWN, most=20)


def _random(draw: random.Random) -> str:
    most = draw.choice((0x80, 0x250, 0x3000, 0xFFFF, 0x10FFFF))
    return "".join(chr(draw.randint(0, most)) for _ in range(draw.randint(0, 40)))


def _cased(draw: random.Random) -> str:
    form = draw.choice(("NFC", "NFD", "NFKD"))
    text = "".join(draw.choice((one.upper(), one.lower(), one)) for one in _plain(draw))
    return unicodedata.normalize(form, text)


def _huge(draw: random.Random) -> str:
    unit = draw.choice((_syntax, _odd, _everything, _random))(draw) or "x"
    return (unit * (HUGE // len(unit) + 1))[: draw.choice((HUGE, HUGE + 5, HUGE // 3))]


MAKERS = {
    "words": (_plain, 12), "words that stand nowhere": (_mixed(ABSENT, SIGNS), 12),
    "syntax of FTS5 and SQL": (_syntax, 24), "odd characters": (_odd, 16),
    "memd's own operators": (_mixed(OWN, WORDS, RUNS), 14), "everything at once": (_everything, 12),
    "random code points": (_random, 10), "other cases and forms": (_cased, 8),
    "10,000 characters": (_huge, 0.4),
}  # fmt: skip

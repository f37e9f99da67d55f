"""The questions of a measurement: read from a golden file, or made from headings of the notes.

A golden file has one JSON object per line; all invalid lines are reported at once, with their numbers:

{"query": "why did we leave kafka", "path": "decisions/queue.md", "line": 14}
{"query": "flaky tests", "path": ["ci.md", "daily/2026-05-01.md"]}

A heading summarizes the text below it, so it is a question with a known answer. It is used only if it has two
content words, occurs in one note only, and has text below it. The choice depends only on the notes and the
seed. Everything except `load` is pure.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from msgspec import DecodeError, Meta, Struct, ValidationError, json

from memd.errors import InvalidError, NotFoundError
from memd.search.filters import BY_KEY
from memd.sources.front_matter import read_front_matter
from memd.sources.markdown import MAX_TITLE_CHARS, Block, plain_title, read_blocks, split_lines

ERRORS_SHOWN = 5  # a page; a user with more errors has the wrong file
EXAMPLE = '{"query": "why did we leave kafka", "path": "decisions/queue.md", "line": 14}'

MIN_CONTENT_WORDS = 2  # a single word is a label: "Postgres" occurs above a hundred different texts
MIN_BELOW = 40  # letters and digits below a heading; arbitrary: half a line is no answer

_WIKI_LINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]")
_ANCHOR = re.compile(r"\s*\{#[^}]*\}$")  # {#name}, an anchor that some renderers support
_WORD = re.compile(r"[^\W_]+")
# Scripts without spaces between words, and Hangul because of its particles: two characters count as a word.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)

_OPERATOR = re.compile(rf"(?<!\S)({'|'.join(BY_KEY)}):(?=\S)")

# Function words of questions, which are not given to grep.
FUNCTION_WORDS = frozenset(
    """
    a about all also an and any are as at be been but by can could did do does don for from had has have
    he her his how i if in into is it its me my no not of on or our she should so some such t s than
    that the their them then there these they this those to us via was we were what when where which who
    whom whose why will with would you your
    """.split()  # noqa: SIM905 (readable as words)
)
# Usual names of a note's parts: a heading with only these words says nothing about the text below it.
PART_WORDS = frozenset(
    """
    acknowledgements acknowledgments action actions after agenda appendix background before chapter
    changelog changes conclusion conclusions content contents context contributing daily date day days
    description details diary done down draft entry example examples faq features first further general
    getting here idea ideas info information install installation intro introduction item items journal
    last later learned license licence link links list log logs meeting meetings misc miscellaneous
    month new next note notes old open options other out over overview page part people plan plans
    problem problems progress project question questions read reading reference references related
    requirements resource resources result results review second section see setup solution source
    sources standup start started status step steps story summary table task tasks thing things thoughts
    three til title tldr today todo todos tomorrow topic topics two untitled up update updates usage use
    using vs week weekly weeks work year yesterday monday tuesday wednesday thursday friday saturday
    sunday january february march april may june july august september october november december
    """.split()  # noqa: SIM905 (readable as words)
)


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """The place of an answer."""

    path: str  # of the source, relative to the workspace
    line: int | None  # 1-based; None: anywhere in the source


@dataclass(frozen=True, slots=True)
class Topic:
    """One query with all its correct answers."""

    text: str
    places: tuple[AnswerPlace, ...]  # each path and line once, at least one

    @property
    def paths(self) -> frozenset[str]:
        """The sources that answer the query."""
        return frozenset(place.path for place in self.places)

    @property
    def passages(self) -> tuple[AnswerPlace, ...]:
        """The answers with a known line."""
        return tuple(place for place in self.places if place.line is not None)


@dataclass(frozen=True, slots=True)
class Choice:
    """One heading chosen as a question."""

    path: str
    heading: Block
    first_line: int  # of the text below it, counted from 0

    @property
    def words(self) -> tuple[str, ...]:
        """The heading's words, normalized by `words`."""
        return words(self.heading.title)

    @property
    def query(self) -> str:
        """The query to type: the heading without characters that a search would take for operators."""
        text = re.sub(r"(?<!\S)-+(?=\w)", "", self.heading.title.replace('"', " "))
        return " ".join(_OPERATOR.sub(r"\1 ", text).split())


@dataclass(frozen=True, slots=True)
class Chosen:
    """The questions, and the number of headings that were not used."""

    choices: tuple[Choice, ...]  # ordered by path, at most one per note
    headings: int  # of all notes
    left_out: Mapping[str, int]  # reason → number
    notes: int  # with at least one usable heading


def load(file: Path, root: str) -> list[Topic]:
    """Read a golden file: JSON lines, whose paths may be absolute if they are below *root*.

    Raises:
        InvalidError: it cannot be read, or has invalid lines, listed with their numbers.
        NotFoundError: it does not exist.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(f"there is no golden file {file}") from None
    except OSError as error:
        raise InvalidError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from None
    return parse(text, str(file), root)


def parse(text: str, name: str, root: str) -> list[Topic]:
    """Return the questions of a golden file's *text*, in order; lines with the same query are one question.

    Blank lines and lines that begin with "#" are ignored.

    Raises:
        InvalidError: *name* and the number of each invalid line, with what was expected.
    """
    by_query: dict[str, dict[AnswerPlace, None]] = {}
    faults = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            question = _question(line, root)
        except _BadLineError as fault:
            faults.append(f"{name}:{number}: {fault}")
        else:
            by_query.setdefault(question.text, {}).update(dict.fromkeys(question.places))
    if faults:
        more = [f"and {len(faults) - ERRORS_SHOWN} more"] if len(faults) > ERRORS_SHOWN else []
        raise InvalidError("\n".join([*faults[:ERRORS_SHOWN], *more, f"Example line: {EXAMPLE}"]))
    if not by_query:
        raise InvalidError(f"{name} has no questions. Example line: {EXAMPLE}")
    return [Topic(query, tuple(places)) for query, places in by_query.items()]


def front_matter_end(lines: Sequence[str]) -> int:
    """Return the number of lines of the front matter, with both fences; 0 without front matter."""
    return read_front_matter(split_lines("\n".join(lines))).lines


def headings(lines: Sequence[str]) -> list[Block]:
    """Return the outermost headings of a text that are not empty, in order, with their titles as rendered."""
    blocks, _ = read_blocks(split_lines("\n".join(lines)), front_matter_end(lines))
    return [replace(block, title=title) for block in blocks if block.level and (title := _plain(block.title))]


def visible(markup: str) -> str:
    """Return a line of Markdown as rendered."""
    return _plain(plain_title(markup))


def choose(texts: Mapping[str, Sequence[str]], *, wanted: int, seed: int) -> Chosen:
    """Choose at most one heading per note, and at most *wanted* in total, in *texts*: path → lines.

    One, because removing a heading takes some of the note's own words away, and removing two would take more
    than any real query lacks. A choice depends only on the seed, the path and the heading, so that adding or
    deleting a note changes one question, not all of them.
    """
    found = {path: headings(lines) for path, lines in texts.items()}
    # Counted by notes, not by occurrences: a note may repeat a heading.
    spread = Counter(
        title for known in found.values() for title in {words(heading.title) for heading in known}
    )
    left_out: Counter[str] = Counter()
    best: list[tuple[bytes, Choice]] = []
    for path, known in found.items():
        usable = []
        for choice, fault in _judged(path, texts[path], known, spread):
            if fault:
                left_out[fault] += 1
            else:
                usable.append((_lot(seed, path, choice.heading.title), choice))
        if usable:
            best.append((_lot(seed, path, ""), min(usable, key=lambda drawn: drawn[0])[1]))
    drawn = sorted(best, key=lambda lot: lot[0])[:wanted]
    choices = sorted((choice for _, choice in drawn), key=lambda choice: choice.path)
    return Chosen(tuple(choices), sum(map(len, found.values())), dict(left_out), len(best))


def words(text: str) -> tuple[str, ...]:
    """Return the words of *text* normalized for comparison: NFKC, casefolded, without punctuation."""
    folded = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return tuple(_WORD.findall(folded.casefold()))


def content_words(text: str) -> int:
    """Return the number of words in *text* that carry meaning."""
    return sum(map(_weight, words(text)))


class _BadLineError(Exception):
    """A line of a golden file is invalid."""


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    query: str
    path: str | Annotated[list[str], Meta(min_length=1)]
    line: Annotated[int, Meta(ge=1)] | None = None
    note: Any = None  # the author's own comment


def _question(line: str, root: str) -> Topic:
    try:
        entry = json.decode(line, type=_Line)
    except ValidationError as error:
        fault, _, place = str(error).replace("`", "").partition(" - at ")
        raise _BadLineError(
            f"{place.replace('$.', '') or 'the line'}: {fault[0].lower()}{fault[1:]}"
        ) from None
    except (DecodeError, RecursionError) as error:
        raise _BadLineError(f"expected a JSON object on the line, found no JSON ({error})") from None
    paths = [entry.path] if isinstance(entry.path, str) else entry.path
    if not all(text.strip() for text in (entry.query, *paths)):
        raise _BadLineError("query and path must have a text")
    if entry.line is not None and len(paths) > 1:
        raise _BadLineError("line requires a single path: write one line of the file for each place")
    places = dict.fromkeys(AnswerPlace(_relative(path, root), entry.line) for path in paths)
    return Topic(entry.query.strip(), tuple(places))


def _relative(path: str, root: str) -> str:
    """Return *path* in the form used by memd: relative to the workspace, without "." and ".."."""
    pure = PurePosixPath(path)
    if pure.is_absolute() and pure.is_relative_to(root):
        pure = pure.relative_to(root)
    if pure.is_absolute() or ".." in pure.parts:
        raise _BadLineError(f"path: {path!r} is not below the workspace {root}")
    return str(pure)


def _plain(title: str) -> str:
    """Return a title without syntax unknown to CommonMark: wikilinks and anchors."""
    return " ".join(_ANCHOR.sub("", _WIKI_LINK.sub(r"\1", title)).split())


def _judged(
    path: str, lines: Sequence[str], known: Sequence[Block], spread: Mapping[tuple[str, ...], int]
) -> Iterator[tuple[Choice, str]]:
    """Yield each heading with the reason why it is not used; "" if it can be."""
    for position, heading in enumerate(known):
        first_line, amount = _below(lines, known, position)
        fault = ""
        if content_words(heading.title) < MIN_CONTENT_WORDS or len(heading.title) >= MAX_TITLE_CHARS:
            fault = "too general"
        elif spread[words(heading.title)] > 1:
            fault = "in several notes"
        elif amount < MIN_BELOW:
            fault = "nothing below"
        yield Choice(path, heading, first_line), fault


def _below(lines: Sequence[str], known: Sequence[Block], position: int) -> tuple[int, int]:
    """Return the first line of the text below a heading, and the number of its letters and digits."""
    heading = known[position]
    later = [other for other in known if other.start >= heading.end]
    stop = next((other.start for other in later if other.level <= heading.level), len(lines))
    titles = {number for other in later for number in range(other.start, other.end)}
    inside = [n for n in range(heading.end, stop) if n not in titles and lines[n].strip()]
    amount = sum(character.isalnum() for number in inside for character in lines[number])
    return (inside[0] if inside else heading.start), amount


def _lot(seed: int, path: str, heading: str) -> bytes:
    """Return a pseudo-random sort key that is the same in each run."""
    return hashlib.blake2b(f"{seed}\0{path}\0{heading}".encode(), digest_size=8).digest()


def _weight(word: str) -> int:
    if _UNSPACED.search(word):
        return max(1, len(word) // 2)
    return int(len(word) > 1 and not word.isdigit() and word not in FUNCTION_WORDS | PART_WORDS)

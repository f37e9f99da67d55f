"""The rows of a team's collections in Milvus: keys, facets, packed values and filter expressions. Pure.

Text of a user is never part of an expression: keys hold digests and hexadecimal paths, and whatever filters
compare is a facet, a number of 63 bits. So there is nothing to escape, in any version of Milvus, and no path,
tag or term can change what an expression means.

The order of hexadecimal paths is the order of the paths' code points, so that a listing by keys is a listing
by paths.
"""

import base64
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import PurePosixPath
from typing import Final

import msgspec
from msgspec import Struct

from memd.errors import MemdError, StoreRefusedError
from memd.languages import FUNCTION_WORDS
from memd.search import fields
from memd.search.globs import matching
from memd.stores.store import Filter, PublishedSource, SourceKey
from memd.text import is_spaceless, normalized

# A VARCHAR of Milvus has at most 65,535 bytes; base64 and a margin are taken off.
VALUE_BYTES: Final = 45_000
MAX_HEAD_CHARS: Final = 60_000  # the same
MAX_WORDS_BYTES: Final = 65_000  # of a chunk; words beyond are not found, which takes a line of 65 kB
MAX_FACETS: Final = 1_000  # of a source; its array in Milvus has at most 4,096. Later ones are not found
MAX_PATH_BYTES: Final = 4_096  # PATH_MAX of Linux
SPACELESS_BUCKETS: Final = 64  # of a workspace's terms of spaceless scripts; arbitrary
TOTALS: Final = ""  # bucket of the counts that belong to no term
CHUNKS, LENGTH = "chunks", "length"  # in it, beside one for each language
SUPERSEDED: Final = "/>"  # bucket of the names that sources of the workspace supersede, and their beginning


def digest(*parts: str | bytes | int) -> str:
    """Return 32 hexadecimal digits that identify some values."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else _bytes(str(part))
        hashed.update(len(raw).to_bytes(4, "big") + raw)
    return hashed.hexdigest()


def facet(*parts: str) -> int:
    """Return the number that stands for a property of a source in expressions."""
    return int(digest(*parts)[:16], 16) >> 1


def place_of(key: SourceKey) -> str:
    """Return the key of a source: its workspace's digest and its path."""
    return f"{digest(key.workspace)}.{_bytes(key.path).hex()}"


def path_of(place: str) -> tuple[str, str]:
    """Return the workspace's digest and the path of a source's key."""
    workspace, _, path = place.partition(".")
    return workspace, bytes.fromhex(path).decode(errors="surrogatepass")


def chunk_id(key: SourceKey, ordinal: int, revision: int) -> str:
    """Return the primary key of a chunk.

    The revision, not the content, is part of it: a new state is written beside the old one, whose rows are
    deleted after readers were told of the new one.
    """
    return digest(key.workspace, key.path, ordinal, revision)


def packed(value: object) -> str:
    """Return a value as text for a VARCHAR."""
    return base64.b64encode(zlib.compress(msgspec.msgpack.encode(value), 1)).decode()


def unpacked(text: str) -> bytes:
    """Return the MessagePack of a packed value."""
    return zlib.decompress(base64.b64decode(text))


def pieces(text: str) -> list[str]:
    """Return a packed value in pieces that each fit into a row; at least one."""
    size = VALUE_BYTES // 3 * 4
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]


def searchable_words(words: str) -> str:
    """Return the terms of a chunk as Milvus may store them; never empty, which Milvus would refuse."""
    raw = words.encode(errors="replace")
    if len(raw) > MAX_WORDS_BYTES:
        words = raw[:MAX_WORDS_BYTES].decode(errors="ignore").rpartition(" ")[0]
    return words.strip() or "\N{WHITE SQUARE}"


# -- facets and filters ------------------------------------------------------------------------------------


def facets_of(source: PublishedSource) -> list[int]:
    """Return the facets by which filters find a source: folders, tags, keys and values of front matter."""
    path = _nfc(source.key.path)
    found = dict.fromkeys(
        facet("in", str(one)) for one in (PurePosixPath(path), *PurePosixPath(path).parents)
    )
    found |= dict.fromkeys(facet("part", one) for one in path.split("/"))
    for tag in source.tags:
        whole = f"{_nfc(tag).casefold()}/"
        found |= dict.fromkeys(facet("tag", whole[:end]) for end in _indices(whole, "/"))
    found |= dict.fromkeys(facet("key", key) for key, _ in source.fields)
    for key, value in source.fields:
        found |= dict.fromkeys(_values(key, value))
    return list(found)[:MAX_FACETS]


def names_of(source: PublishedSource) -> list[int]:
    """Return the facets by which other sources refer to a source, and those of its own references."""
    workspace = source.key.workspace
    found = dict.fromkeys(facet("name", workspace, name) for _, name in source.names)
    found |= dict.fromkeys(
        facet("supersedes", workspace, name) for kind, _, name, _ in source.links if kind == "supersedes"
    )
    found |= dict.fromkeys(facet("field", workspace, key, value) for key, value in source.fields)
    return list(found)[:MAX_FACETS]


class Where(Struct, frozen=True):
    """An expression for filters, and the filters that it does not decide."""

    expression: str  # "": none
    by_source: tuple[Filter, ...]  # to be tested with each source
    by_words: tuple[Filter, ...]  # to be tested with the words of each chunk


def where(filters: Sequence[Filter]) -> Where:
    """Return the expression for filters. It excludes no chunk that meets them.

    Raises:
        StoreRefusedError: a filter is unknown, or has an impossible value.
    """
    terms: list[str] = []
    by_source: list[Filter] = []
    by_words: list[Filter] = []
    for one in filters:
        try:
            _add(one, terms, by_source, by_words)
        except (KeyError, ValueError, MemdError) as error:
            raise StoreRefusedError(
                f"{one.name}={one.values!r:.100} is no filter of this store: {error}"
            ) from error
    return Where(" and ".join(terms), tuple(by_source), tuple(by_words))


def _add(one: Filter, terms: list[str], by_source: list[Filter], by_words: list[Filter]) -> None:
    if one.name in {"phrase", "excluded"}:
        by_words.append(one)
    elif one.name in {"since", "until"}:
        days = [date.fromisoformat(value).toordinal() for value in one.values]
        terms.append(f"day >= {min(days)}" if one.name == "since" else f"day <= {max(days)}")
    else:
        if one.name == "path":
            matching(one.values)  # an unusable pattern is an error, not an empty answer
        found = [_ANY[one.name](value) for value in one.values]
        if all(numbers for numbers, _ in found):
            terms.append(contains("facets", dict.fromkeys(n for numbers, _ in found for n in numbers)))
        if not all(is_exact for _, is_exact in found):
            by_source.append(one)


def contains(field: str, numbers: Iterable[int]) -> str:
    """Return an expression: an array has one of some numbers."""
    return f"array_contains_any({field}, [{', '.join(map(str, numbers))}])"


def one_of(field: str, keys: Iterable[str]) -> str:
    """Return an expression: a field is one of some keys, which hold no text of a user."""
    return f"{field} in [{', '.join(f'{chr(34)}{key}{chr(34)}' for key in keys)}]"


def meets(source: PublishedSource, filters: Iterable[Filter]) -> bool:
    """Return whether a source meets conditions on its path and on its front matter."""
    for one in filters:
        if one.name == "path":
            if not matching(one.values)(_nfc(source.key.path)):
                return False
        elif one.name == "field" and not any(_passes(source, value) for value in one.values):
            return False
    return True


def _passes(source: PublishedSource, typed: str) -> bool:
    test = fields.parse(typed, None)
    values = [value for key, value in source.fields if key == test.key]
    if test.operator in {"has", "lacks"}:
        return bool(values) == (test.operator == "has")
    return any(map(test.passes, values)) != (test.operator == "!=")


def _of_tag(tag: str) -> tuple[list[int], bool]:
    return [facet("tag", _nfc(tag).casefold().removeprefix("#").strip("/"))], True


def _of_path(pattern: str) -> tuple[list[int], bool]:
    """Return the facet of the longest part of a glob without wildcards, and whether it is the whole glob."""
    plain = _nfc(pattern).strip("/")
    first = min((plain.find(wild) for wild in "*?[" if wild in plain), default=-1)
    if first < 0:
        return [facet("in", plain)], True
    folder = plain[:first].rpartition("/")[0]
    if folder:
        return [facet("in", folder)], False
    named = [part for part in plain.split("/")[1:] if part and not set(part) & set("*?[]")]
    return ([facet("part", named[0])] if named and "[" not in plain else []), False


def _of_field(typed: str) -> tuple[list[int], bool]:
    """Return the facets of which a source that meets the condition has one; none if there is no such set."""
    test = fields.parse(typed, None)
    if test.operator in {"lacks", "!="}:
        return [], False
    if test.operator == "has":
        return [facet("key", test.key)], True
    if test.operator != "=":
        return [facet("key", test.key)], False
    found = [facet("text", test.key, _nfc(test.value).casefold())]
    if test.first is None or test.last is None:
        return found, True
    span = next(
        (name for name, first, last in _spans(test.first) if (first, last) == (test.first, test.last)), ""
    )
    if not span:
        return [facet("key", test.key)], False
    return [*found, facet("days", test.key, span)], True


_ANY: Final = {"tag": _of_tag, "path": _of_path, "field": _of_field}


def _values(key: str, value: str) -> Iterator[int]:
    """Yield the facets of a value, one for each way in which `field:` compares it for equality."""
    yield facet("text", key, _nfc(value).casefold())
    try:
        day = date.fromisoformat(value[:10])
    except ValueError:
        return
    for name, _, _ in _spans(day):
        yield facet("days", key, name)


def _spans(day: date) -> Iterator[tuple[str, date, date]]:
    """Yield the day, the month and the year of a day, as they are typed, with their first and last days."""
    yield day.isoformat(), day, day
    first = day.replace(day=1)
    next_month = first.toordinal() + 32
    last = date.fromordinal(next_month).replace(day=1).toordinal() - 1 if next_month < _MAX else _MAX
    yield day.isoformat()[:7], first, date.fromordinal(last)
    yield day.isoformat()[:4], day.replace(month=1, day=1), day.replace(month=12, day=31)


_MAX: Final = date.max.toordinal()


# -- statistics --------------------------------------------------------------------------------------------


def counts_of(chunks: Iterable[tuple[str, int]]) -> Counter[str]:
    """Return what chunks add to the counts of their workspace: of terms, and of "one character*".

    Args:
        chunks: the words and the length of each.
    """
    found: Counter[str] = Counter()
    for chunk_words, length in chunks:
        terms = set(chunk_words.split())
        found.update(terms)
        found.update({f"{term[0]}*" for term in terms if not term.isascii() and is_spaceless(term[0])})
        found[f"/{CHUNKS}"] += 1
        found[f"/{LENGTH}"] += length
        for language, words in FUNCTION_WORDS.items():
            if signs := len(words & terms):
                found[f"/{language}"] += signs
    return found


def counts_of_source(source: PublishedSource, chunks: Iterable[tuple[str, int]]) -> Counter[str]:
    """Return what a source adds to the counts of its workspace: of its chunks, and of superseded names."""
    found = counts_of(chunks)
    found.update({f"{SUPERSEDED}{name}" for kind, _, name, _ in source.links if kind == "supersedes"})
    return found


def bucket_of(term: str) -> str:
    """Return the bucket of a term: its first two characters, so that words with one stem are together."""
    if term.startswith(SUPERSEDED):
        return SUPERSEDED
    if term.startswith("/"):
        return TOTALS
    if not term.isascii() and is_spaceless(term[0]):
        return f"/{ord(term[0]) % SPACELESS_BUCKETS}"
    return term[:2]


def _indices(text: str, character: str) -> Iterator[int]:
    return (index for index, one in enumerate(text) if one == character)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _nfc(name: str) -> str:
    return normalized("NFC", name)

"""The part of the store in Milvus that needs no Milvus: rows, expressions, errors without pymilvus."""

import random
import re
import subprocess
import sys
from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.config import TeamConfig
from memd.errors import StoreRefusedError
from memd.stores.lean import lean_of
from memd.stores.milvus import MilvusStore
from memd.stores.milvus_rows import (
    MAX_FACETS,
    MAX_WORDS_BYTES,
    bucket_of,
    contains,
    counts_of,
    facets_of,
    meets,
    path_of,
    pieces,
    place_of,
    searchable_words,
    where,
)
from memd.stores.milvus_sources import Packed, lean_of_packed, packed_source
from memd.stores.store import ChunkKey, Filter, Forms, SourceKey, Wanted
from stores.published_notes import HOSTILE, chunk, random_sources, source
from stores.reference_store import _meets_one

NOTES = random_sources(1, 40)
names = st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=12))
# Nothing that begins or ends a string, or escapes in one: keys are hexadecimal, all else is a number.
SAFE = re.compile(
    r'(?:[a-z_]+ (?:in|==|>=|<=|>|<) |array_contains_any\(|[\[\](), ]|"[0-9a-f.]*"|\d+|facets| and )*'
)


def test_a_source_comes_back_as_it_was_packed():
    """A packed source is the same after unpacking, with vectors and without, whatever its names."""
    for one in NOTES:
        head, body, rows = packed_source(one)
        assert Packed(head, body).whole(dict(enumerate(rows))) == one
        assert Packed(head, "").source() == msgspec.structs.replace(one, chunks=())


def test_a_chunk_that_exceeds_a_row_comes_back():
    """A chunk whose text exceeds a row is packed with its source, beside others that have rows."""
    rng = random.Random(1)
    texts = [
        "short",
        *("".join(map(chr, rng.choices(range(0x4E00, 0x9FFF), k=50_000))) for _ in range(2)),
        "",
    ]
    one = source("long.md", *(chunk(n, "word", text=text) for n, text in enumerate(texts)))
    head, body, rows = packed_source(one)
    assert [not row for row in rows] == [False, True, True, False]
    packed = Packed(head, "".join(pieces(body)))
    assert packed.whole({0: rows[0], 3: rows[3]}) == one
    assert [packed.has_row(ordinal) for ordinal in range(4)] == [True, False, False, True]


WORDS_OF_COUNTS = ["a", "b", "ab", "the", "was", "und", "der", "ich", "searching", "searched", "日本", "本語"]


@given(
    st.lists(
        st.lists(st.lists(st.sampled_from(WORDS_OF_COUNTS), min_size=1, max_size=12), min_size=1, max_size=9),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_evidence_of_packed_sources_is_that_of_whole_ones(texts, data):
    """Whatever the words of the chunks are, packed sources give the evidence that whole ones give."""
    notes = [
        source(f"{number}.md", *(chunk(n, " ".join(words)) for n, words in enumerate(each)))
        for number, each in enumerate(texts)
    ]
    asked = Wanted(
        tuple(data.draw(st.lists(st.sampled_from([*WORDS_OF_COUNTS, "missing"]), unique=True))),
        ("日", "a"), None, None, (), 10, (), (Forms("searching", ("searched", "b"), "english", ("german",)),),
        data.draw(st.sampled_from(["", "a b", "日本 本語", "b a*"])),
    )  # fmt: skip
    keys = [ChunkKey(one.key.workspace, one.key.path, n) for one in notes for n in range(0, 12, 3)]
    some = []
    for one in notes:
        head, body, rows = packed_source(one)
        ordinals = [n for n in range(0, 12, 3) if n < len(one.chunks)]
        some.append((Packed(head, body), ordinals, dict(enumerate(rows))))
    assert lean_of_packed(some, asked) == lean_of(notes, keys, asked)


def test_counts_of_packed_sources_end_where_those_of_an_index_do():
    """A term that a chunk has more than 255 times counts 255 times in it, also in the sum of its source."""
    one = source("many.md", chunk(0, "a " * 300 + "b"), chunk(1, "a " * 200 + "b"))
    asked = Wanted(("a", "b"), ("a",), None, None, (), 10)
    head, body, rows = packed_source(one)
    found = lean_of_packed([(Packed(head, body), [1], dict(enumerate(rows)))], asked)
    assert found == lean_of([one], [ChunkKey("id of one", "many.md", 1)], asked)


def test_a_source_whose_links_exceed_a_row_comes_back():
    """Links that are too many for a row are packed with the chunks."""
    links = tuple(("text", f"{n} {hash(str(n))}", f"name {n * 7919 % 100_003}", n) for n in range(20_000))
    one = source("many.md", chunk(0, "word"), links=links)
    head, body, rows = packed_source(one)
    assert head == ""
    assert Packed(head, "".join(pieces(body))).whole(dict(enumerate(rows))) == one
    assert all(len(piece) <= 65_535 for piece in pieces(body))


@given(names, names)
def test_keys_sort_as_paths_do(first, second):
    """The keys of two sources are in the order of their paths, and say these paths."""
    keys = [place_of(SourceKey("workspace", path)) for path in (first, second)]
    assert (keys[0] < keys[1]) == (
        first.encode(errors="surrogatepass") < second.encode(errors="surrogatepass")
    )
    assert [path_of(key)[1] for key in keys] == [first, second]


filters = st.one_of(
    st.builds(lambda name: Filter("tag", (name,)), st.one_of(names, st.sampled_from(["project", "#Idea"]))),
    st.builds(
        lambda one, name: Filter("path", (one.replace("X", name),)),
        st.sampled_from(
            ["X", "X/*", "*/X", "*X*", "daily/*", "projects/*/*.md", "[d]aily/X", "?aily/*", "*/alpha/*"]
        ),
        names,
    ),
    st.builds(
        lambda key, operator, value: Filter("field", (f"{key}{operator}{value}",)),
        st.sampled_from(["status", "priority", "due", "other"]),
        st.sampled_from(["=", "!=", ">=", "<="]),
        st.sampled_from(["draft", "2", "2.0", "2026-05-01", "2026-05", "2026", "2025", "05-2026", *HOSTILE]),
    ),
    st.sampled_from([Filter("field", ("status",)), Filter("field", ("!status",))]),
    st.builds(lambda day: Filter("since", (day.isoformat(),)), st.dates(date(2023, 1, 1), date(2027, 1, 1))),
    st.builds(lambda day: Filter("until", (day.isoformat(),)), st.dates(date(2023, 1, 1), date(2027, 1, 1))),
)


@given(filters)
def test_an_expression_finds_every_source_that_meets_a_filter(one):
    """What an expression excludes does not meet the filter; what is left open decides the rest."""
    try:
        within = where((one,))
    except StoreRefusedError:
        return  # a bound of words, or a pattern that cannot be used
    for note in NOTES:
        is_found = _found(note, within.expression) and meets(note, within.by_source)
        assert is_found == _meets_one(note, note.chunks[0], one), (note, one, within)


@given(st.lists(filters, max_size=3))
def test_no_text_of_a_user_is_in_an_expression(some):
    """An expression consists of numbers and names of fields, whatever the filters hold."""
    try:
        expression = where(some).expression
    except StoreRefusedError:
        return
    assert SAFE.fullmatch(expression), expression
    assert SAFE.fullmatch(contains("facets", [1]))


def test_a_filter_with_an_impossible_value_is_refused_in_one_line():
    """A filter that the store does not know, or whose value cannot be used, is named."""
    for one in (Filter("author", ("me",)), Filter("since", ("soon",)), Filter("path", ("x" * 5000,))):
        with pytest.raises(StoreRefusedError, match=rf"^{one.name}=.*is no filter of this store") as error:
            where((one,))
        assert "\n" not in str(error.value)


def test_counts_are_those_of_chunks_that_have_a_term():
    """A term counts once a chunk, a beginning of one character once a chunk, function words by language."""
    counts = counts_of([("the word the 日本 日曜", 5), ("word", 1)])
    assert (counts["word"], counts["the"], counts["日*"], counts["/chunks"]) == (2, 1, 1, 2)
    assert (counts["/length"], counts["/english"]) == (6, 1)


def test_all_terms_with_a_common_beginning_are_in_one_bucket():
    """The terms that begin like a word's stem are read with the word; so are those of an unfinished run."""
    assert bucket_of("inhibits") == bucket_of("inhibition")
    assert bucket_of("日*") == bucket_of("日本")
    assert len({bucket_of(term) for term in ("/chunks", "/length", "/english")}) == 1


def test_a_chunk_of_a_huge_word_fits_into_a_row():
    """The searchable words of a chunk are cut before Milvus would refuse them, at a word, and never empty."""
    words = searchable_words("日本 " * 30_000)
    assert MAX_WORDS_BYTES - 10 < len(words.encode()) <= MAX_WORDS_BYTES
    assert set(words.split()) == {"日本"}
    assert searchable_words("")
    assert len(facets_of(source("x.md", tags=tuple(f"tag{n}" for n in range(5000))))) == MAX_FACETS


def test_a_missing_library_is_named_with_the_command_that_installs_it():
    """Without pymilvus, a call says in one line what to install."""
    program = (
        "import sys; sys.modules['pymilvus'] = None\n"
        "from memd.config import TeamConfig\nfrom memd.errors import StoreError\n"
        "from memd.stores.milvus import MilvusStore\n"
        "try: MilvusStore(TeamConfig(uri='milvus+lite:///x.db')).workspaces(5.0)\n"
        "except StoreError as error: print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "needs the library pymilvus" in found.stdout
    assert "pip install 'pymilvus>=2.6.17,<2.7'" in found.stdout
    assert found.stdout.count("\n") == 1


def test_a_collection_that_milvus_cannot_name_is_refused():
    """A name with other characters than letters, digits and _ is refused before anything is asked."""
    for name in ("a-b", "9a", 'x" or', "ü"):
        with pytest.raises(StoreRefusedError, match="Milvus allows letters"):
            MilvusStore(TeamConfig(uri="http://127.0.0.1:1", collection=name))


def test_the_module_needs_no_library_to_be_imported():
    """Importing the store loads neither pymilvus nor pandas: only a call does."""
    program = "import sys, memd.stores.milvus; print({'pymilvus', 'pandas', 'grpc'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def _found(note, expression: str) -> bool:
    """Return whether a row of *note* meets an expression, as Milvus understands it."""
    day, facets = date.fromisoformat(note.day).toordinal(), set(facets_of(note))
    for term in filter(None, expression.split(" and ")):
        if term.startswith("day"):
            _, operator, number = term.split()
            if not (day >= int(number) if operator == ">=" else day <= int(number)):
                return False
        elif not facets & {int(one) for one in re.findall(r"\d+", term)}:
            return False
    return True

"""A team's store in Milvus.

Milvus finds candidates: BM25 over the team's terms, and the nearest vectors. Everything that decides a score
is read from packed rows: whole sources, and each workspace's own counts, because Milvus's idf is that of all
tenants of a shard.

One daemon writes a workspace, one call at a time: `milvus_writer` says how.

Run as a program, it serves the store to the daemon that started it. Thread-safe.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from itertools import chain, groupby
from math import gcd
from typing import Final, cast

import msgspec
import numpy as np

from memd.config import TeamConfig, team_token
from memd.errors import StoreRefusedError
from memd.index.source_rows import ARCHIVES, SESSION
from memd.index.vectors import FLOAT_BYTES
from memd.index.vocabulary import FORM_START, CountedVocabulary
from memd.languages import FUNCTION_WORDS, Language
from memd.search.keyword import idf
from memd.search.spelling import CANDIDATES, words_within
from memd.search.word_forms import COMMON_SHARE, FEW_CHUNKS
from memd.stores.lean import counter, has_phrase
from memd.stores.local import EDITS
from memd.stores.milvus_client import BOUNDED, MOST_ROWS, STRONG, Clock, Milvus, Row, Value
from memd.stores.milvus_counts import Counts, WorkspaceCounts
from memd.stores.milvus_rows import (
    CHUNKS,
    LENGTH,
    Where,
    chunk_id,
    contains,
    digest,
    facet,
    meets,
    one_of,
    packed,
    path_of,
    place_of,
    unpacked,
    where,
)
from memd.stores.milvus_sources import Packed, Shown, lean_of_packed
from memd.stores.milvus_writer import SOURCE, Writer
from memd.stores.relations import related
from memd.stores.serve import serve_child
from memd.stores.store import (
    MOST_HOLDERS,
    ChunkKey,
    Evidence,
    Filter,
    Forms,
    Found,
    Holders,
    Listed,
    Near,
    PublishedSource,
    PublishedWorkspace,
    SourceKey,
    Statistics,
    Wanted,
    parts_of,
)

MORE: Final = 4  # times as many hits are asked for if filters leave too few
# Rows of a rare term that are read to look for phrases, and for forms without their word; at 1 kB each.
MOST_READ: Final = 500
MOST_TIMES: Final = 50  # a term in a query to Milvus: how finely terms are weighed. Arbitrary
WORKSPACES_S: Final = 3.0  # the list of workspaces may be this old
WINDOW_DAYS: Final = (
    7  # the newest notes are looked for among these days first, then among MORE times as many
)
WORKSPACE: Final = "w"  # kind of packed values
_HITS: Final = ["source", "ordinal"]


_NOTHING: Final = Wanted((), (), None, None, (), 0)


class MilvusStore:
    """A `Store` in Milvus: a server, a cluster, or a file of Milvus Lite."""

    def __init__(self, config: TeamConfig, token: str = "", *, has_words: bool = True) -> None:
        """Connect to nothing yet; arguments as of `Milvus`.

        Raises:
            StoreRefusedError: the configuration cannot be used.
        """
        self._milvus = Milvus(config, token, has_words=has_words)
        self._writing = threading.Lock()
        self._threads = ThreadPoolExecutor(3, "memd-milvus")
        self._counts = WorkspaceCounts(self._milvus)
        self._writer = Writer(self._milvus, self._counts, self._threads)  # for `_writing`
        self._lock = threading.Lock()  # protects _listed
        self._listed: tuple[float, dict[str, PublishedWorkspace]] = (-WORKSPACES_S, {})

    # -- reading -------------------------------------------------------------------------------------------

    def candidates(self, wanted: Wanted, deadline_s: float) -> Found:
        """See `Store`, as for all that follow."""
        clock = Clock(deadline_s)
        known = self._workspaces(clock)
        asked = _wanted_ids(known, wanted)
        if not asked:
            return Found((), ())
        within = where(wanted.filters)
        scope = [] if len(asked) == len(known) else [one_of("ws", asked)]
        expression = " and ".join(filter(None, [*scope, within.expression]))
        if wanted.filters and not (parts_of(wanted) or wanted.vector):
            return Found(self._newest(clock, expression, within, wanted.pool, known), ())
        by_vector = self._threads.submit(self._by_vector, clock, expression, within, wanted, known)
        named = [
            self._threads.submit(self._holders, clock, phrase, asked, within, known)
            for phrase in wanted.named
        ]
        by_words = self._by_words(clock, expression, within, wanted, asked=asked, known=known)
        holders = tuple(one.result() for one in named)
        return Found(by_words, by_vector.result(), holders)

    def evidence(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return these sources whole."""
        some = self._whole(Clock(deadline_s), dict.fromkeys(sources))
        return tuple(some[key][0].whole(some[key][2]) for key in sources if key in some)

    def lean(self, chunks: tuple[ChunkKey, ...], wanted: Wanted, deadline_s: float) -> Evidence:
        """Return what ranking needs of these chunks."""
        asked: dict[SourceKey, set[int] | None] = {}
        for key in chunks:
            ordinals = asked.setdefault(SourceKey(key.workspace, key.path), set())
            assert ordinals is not None
            ordinals.add(key.ordinal)
        return lean_of_packed(self._whole(Clock(deadline_s), asked).values(), wanted)

    def related(self, sources: tuple[SourceKey, ...], deadline_s: float) -> tuple[PublishedSource, ...]:
        """Return what decides which sources replace these ones."""
        clock = Clock(deadline_s)
        known = self._workspaces(clock)
        if not known:
            return ()
        # Most workspaces supersede nothing: then no row is read.
        superseded = self._counts.superseded(clock, {digest(one.workspace) for one in sources})
        sources = tuple(
            one for one in sources if one.path.startswith(ARCHIVES) or superseded.get(digest(one.workspace))
        )
        seen: dict[SourceKey, PublishedSource] = {}

        def with_facets(numbers: Iterable[int]) -> set[SourceKey]:
            expression = contains("names", numbers)
            rows = self._milvus.query(self._milvus.rows, clock, expression, ["key"], limit=MOST_ROWS)
            some = self._heads(clock, [row["key"] for row in rows])
            seen.update(some)
            return set(some)

        def names(some: set[SourceKey]) -> set[tuple[str, str]]:
            return {(one.workspace, name) for one in some for _, name in seen[one].names}

        def targets(some: set[SourceKey]) -> set[tuple[str, str]]:
            links = ((one, link) for one in some for link in seen[one].links)
            return {(one.workspace, name) for one, (kind, _, name, _) in links if kind == "supersedes"}

        def linking(wanted: set[tuple[str, str]]) -> set[SourceKey]:
            some = [one for one in wanted if one[1] in superseded.get(digest(one[0]), ())]
            return with_facets(facet("supersedes", *one) for one in some) if some else set()

        seen.update(self._heads(clock, [f"{SOURCE}.{place_of(one)}" for one in sources]))
        asked = set(seen)
        archived = {one for one in asked if one.path.startswith(ARCHIVES)}
        sessions = {
            (one.workspace, value) for one in archived for key, value in seen[one].fields if key == SESSION
        }
        sessions = {one for one in sessions if one[1]}
        same = (
            with_facets(facet("field", one, SESSION, value) for one, value in sessions) if sessions else set()
        )
        same -= archived
        found = related(
            asked | same,
            names=names,
            targets=targets,
            named=lambda wanted: with_facets(facet("name", *one) for one in wanted),
            linking=linking,
        )
        found |= (same | archived) if same else set()
        return tuple(seen[one] for one in sorted(found))

    def statistics(self, wanted: Wanted, deadline_s: float) -> Statistics:
        """Return the counts of the wanted workspaces.

        The chunks with a form but without its word are counted up to MOST_ROWS, those with the phrase up
        to MOST_READ with its rarest term; beyond, the counts of terms stand in, which are too high. Chunks in
        another language are left out of up to MOST_READ.
        """
        clock = Clock(deadline_s)
        asked = _wanted_ids(self._workspaces(clock), wanted)
        whole = wanted.whole.removesuffix("*").split()
        forms = [form for one in wanted.forms for form in (one.word, *one.forms)]
        totals = [f"/{one}" for one in (CHUNKS, LENGTH, *FUNCTION_WORDS)]
        counts = self._counts.of(clock, asked, [*wanted.terms, *forms, *whole, *totals])
        found = [counts.get(one, 0) for one in wanted.terms]
        found += [self._counts.beginning(clock, asked, one) for one in wanted.prefixes]
        found += self._inexact(clock, wanted, asked, counts)
        languages: dict[str, int] = {one: counts.get(f"/{one}", 0) for one in FUNCTION_WORDS}
        parts = dict(zip(parts_of(wanted), found, strict=True))
        return Statistics(counts.get(f"/{CHUNKS}", 0), counts.get(f"/{LENGTH}", 0), parts, languages)

    def vocabulary(self, word: str, deadline_s: float, language: str = "") -> Near:
        """Return the words near *word*.

        Spellings are those with the same first or second letter, or with the two exchanged.
        """
        clock = Clock(deadline_s)
        asked = list(self._workspaces(clock))
        count = self._counts.of(clock, asked, [f"/{CHUNKS}"]).get(f"/{CHUNKS}", 0)
        beginning = self._counts.bucket(clock, asked, word[:FORM_START])
        documents = beginning.get(word, 0)
        words, forms = CountedVocabulary(beginning), Counts()
        if language and documents <= max(FEW_CHUNKS, COMMON_SHARE * count):
            forms = {one: beginning[one] for one in words.forms(word, cast("Language", language))}
        if documents:
            return Near(forms, {})
        near = CountedVocabulary(self._counts.near(clock, asked, word))
        spellings = {one: near.document_frequency(one) for one in words_within(near, word, EDITS)}
        endings = {one: beginning[one] for one in words.beginning_with(word, CANDIDATES)}
        return Near(forms, spellings, endings)

    def sources(self, workspace: str, after: str, limit: int, deadline_s: float) -> tuple[Listed, ...]:
        """Return the sources of a workspace in order of paths, as of now."""
        clock = Clock(deadline_s)
        if not self._milvus.exists(self._milvus.rows, clock):
            return ()
        start = f"{SOURCE}.{digest(workspace)}"
        first = f"{SOURCE}.{place_of(SourceKey(workspace, after))}"
        rows = self._milvus.query(
            self._milvus.rows, clock, f'key > "{first}" and key < "{start}/"',
            ["revision", "hash", "chunks"], limit=min(limit, MOST_ROWS), consistency=STRONG,
        )  # fmt: skip
        rows.sort(key=lambda row: str(row["key"]))
        return tuple(
            Listed(
                SourceKey(workspace, path_of(row["key"].partition(".")[2])[1]), row["revision"],
                bytes.fromhex(row["hash"]), row["chunks"],
            )
            for row in rows
        )  # fmt: skip

    def workspaces(self, deadline_s: float) -> tuple[PublishedWorkspace, ...]:
        """Return all published workspaces."""
        clock = Clock(deadline_s)
        return tuple(self._workspaces(clock, is_fresh=True).values())

    # -- writing -------------------------------------------------------------------------------------------

    def publish(self, workspace: PublishedWorkspace, deadline_s: float) -> None:
        """Announce a workspace; the first one creates the collections."""
        clock = Clock(deadline_s)
        with self._writing:
            self._milvus.create(clock)
            if workspace.model_id and self._milvus.exists(self._milvus.vectors, clock):
                self._milvus.check_model(workspace.model_id)
            of = digest(workspace.id)
            self._milvus.put(clock, [Value(f"{WORKSPACE}.{of}", of, 0, packed(workspace))])
            self._forget_list()

    def unpublish(self, workspace: str, deadline_s: float) -> None:
        """Remove a workspace: first from the list, so that nothing of it is found any more."""
        clock = Clock(deadline_s)
        of = digest(workspace)
        milvus = self._milvus
        with self._writing:
            self._writer.forget(workspace)
            if not milvus.exists(milvus.rows, clock):
                return
            milvus.delete(milvus.rows, clock, [f"{WORKSPACE}.{of}"])
            self._forget_list()
            for collection in (milvus.words, milvus.vectors, milvus.rows):
                if milvus.exists(collection, clock):
                    milvus.delete_workspace(collection, clock, of)
            self._counts.forget()

    def replace(self, sources: tuple[PublishedSource, ...], deadline_s: float) -> None:
        """Store sources."""
        clock = Clock(deadline_s)
        newest = {one.key: one for one in sorted(sources, key=lambda one: one.revision)}
        with self._writing:
            for workspace, some in groupby(sorted(newest), key=lambda key: key.workspace):
                its = [newest[key] for key in some]
                published = self._published(clock, workspace)
                self._writer.write(clock, published, [(one.key, one.revision) for one in its], its)

    def remove(self, sources: tuple[tuple[SourceKey, int], ...], deadline_s: float) -> None:
        """Remove sources up to a revision."""
        clock = Clock(deadline_s)
        with self._writing:
            for workspace, some in groupby(sorted(sources), key=lambda one: one[0].workspace):
                published = self._published(clock, workspace)
                self._writer.write(clock, published, list(dict(some).items()), [])

    # -- candidates ----------------------------------------------------------------------------------------

    def _by_words(
        self,
        clock: Clock,
        expression: str,
        within: Where,
        wanted: Wanted,
        *,
        asked: Collection[str],
        known: dict[str, PublishedWorkspace],
    ) -> tuple[ChunkKey, ...]:
        if not parts_of(wanted) or not self._milvus.has_words:
            return ()
        weights = self._weights(clock, wanted, asked, known)
        text = " ".join(" ".join([term] * times) for term, times in _times(weights).items())
        if not text:
            return ()

        def found(limit: int) -> list[Row]:
            fields = [*_HITS, *(["words"] if within.by_words else [])]
            [hits] = self._milvus.search(
                self._milvus.words, clock, [text], "sparse", limit, filter=expression, output_fields=fields
            )  # fmt: skip
            return [{**hit["entity"], "key": hit["id"]} for hit in hits]

        return self._checked(clock, found, within, wanted.pool, known)

    def _weights(
        self, clock: Clock, wanted: Wanted, asked: Collection[str], known: Collection[str]
    ) -> dict[str, float]:
        """Return the terms of a query with what Milvus's idf, that of all tenants, is to be multiplied by."""
        begun = {start: self._counts.begun(clock, asked, start) for start in wanted.prefixes}
        whole = wanted.whole.removesuffix("*").split()
        every = [*wanted.terms, *whole, *(term for some in begun.values() for term in some)]
        every += [form for one in wanted.forms for form in (one.word, *one.forms)]
        ours = self._counts.of(clock, asked, [*every, f"/{CHUNKS}"])
        theirs = ours if len(asked) == len(known) else self._counts.of(clock, known, [*every, f"/{CHUNKS}"])
        chunks, all_chunks = ours.get(f"/{CHUNKS}", 0), theirs.get(f"/{CHUNKS}", 0)
        found: dict[str, float] = {}

        def add(terms: Iterable[str], weight: float, frequency: int) -> None:
            wanted_idf = weight * idf(chunks, min(frequency, chunks))
            for term in terms:
                found[term] = found.get(term, 0.0) + wanted_idf / idf(
                    all_chunks, min(theirs.get(term, 0), all_chunks)
                )

        weights = iter(wanted.weights or [1.0] * len(parts_of(wanted)))
        for term in wanted.terms:
            add([term], next(weights), ours.get(term, 0))
        for start in wanted.prefixes:
            add(begun[start], next(weights), sum(ours.get(term, 0) for term in begun[start]))
        for one in wanted.forms:
            add(one.forms, next(weights), sum(ours.get(form, 0) for form in (one.word, *one.forms)))
        for term in whole:
            add([term], 1.0, ours.get(term, 0))
        return found

    def _by_vector(
        self,
        clock: Clock,
        expression: str,
        within: Where,
        wanted: Wanted,
        known: dict[str, PublishedWorkspace],
    ) -> tuple[ChunkKey, ...]:
        milvus = self._milvus
        if wanted.vector is None or not milvus.exists(milvus.vectors, clock):
            return ()
        if milvus.model is None or len(wanted.vector) != milvus.model[1] * FLOAT_BYTES:
            return ()  # of another model: only words can be compared
        queries = [one for one in (wanted.vector, wanted.corrected) if one is not None]

        def found(limit: int) -> list[Row]:
            lists = milvus.search(
                milvus.vectors, clock, [np.frombuffer(one, "<f4") for one in queries], "vector", limit,
                filter=expression, output_fields=_HITS,
            )  # fmt: skip
            hits = sorted(chain.from_iterable(lists), key=lambda hit: -float(hit["distance"]))
            rows: dict[str, Row] = {}
            for hit in hits:
                rows.setdefault(hit["id"], {**hit["entity"], "key": hit["id"]})
            return list(rows.values())[:limit]

        return self._checked(clock, found, within, wanted.pool, known)

    def _newest(
        self,
        clock: Clock,
        expression: str,
        within: Where,
        pool: int,
        known: dict[str, PublishedWorkspace],
    ) -> tuple[ChunkKey, ...]:
        """Return the first chunks of the newest sources: Milvus cannot sort, so days are looked through."""
        milvus = self._milvus
        collection = milvus.words
        fields = [*_HITS, "day", "mtime", *(["words"] if within.by_words else [])]
        end, days = date.max.toordinal(), WINDOW_DAYS
        start = date.today().toordinal() - days  # noqa: DTZ011 - only the first window depends on it
        kept: list[ChunkKey] = []
        while len(kept) < pool and end > 0:
            window = f"ordinal == 0 and day > {start} and day <= {end}"
            rows = milvus.query(
                collection, clock, " and ".join(filter(None, [window, expression])), fields, limit=MOST_ROWS
            )
            rows.sort(key=lambda row: (row["day"], row["mtime"]), reverse=True)
            kept += self._meeting(clock, rows, within, known)
            end, days = start, days * MORE
            start = max(start - days, 0)
        return tuple(kept[:pool])

    def _checked(
        self,
        clock: Clock,
        found: Callable[[int], list[Row]],
        within: Where,
        pool: int,
        known: dict[str, PublishedWorkspace],
    ) -> tuple[ChunkKey, ...]:
        """Return *pool* hits that meet all filters; ask for more hits while these are too few."""
        limit = pool
        is_exact = not (within.by_source or within.by_words)
        while True:
            hits = found(limit)
            kept = self._meeting(clock, hits, within, known)
            if len(kept) >= pool or len(hits) < limit or limit >= MOST_ROWS or is_exact:
                return tuple(kept[:pool])
            limit = min(limit * MORE, MOST_ROWS)

    def _meeting(
        self, clock: Clock, hits: Sequence[Row], within: Where, known: dict[str, PublishedWorkspace]
    ) -> list[ChunkKey]:
        """Return those hits of published workspaces that meet what the expression left open."""
        hits = [hit for hit in hits if hit["source"].partition(".")[0] in known]
        if within.by_source:
            heads = self._heads(clock, {f"{SOURCE}.{hit['source']}" for hit in hits})
            allowed = {place_of(key) for key, one in heads.items() if meets(one, within.by_source)}
            hits = [hit for hit in hits if hit["source"] in allowed]
        if within.by_words:
            words = {hit["key"]: hit["words"] for hit in hits if "words" in hit}
            missing = [hit["key"] for hit in hits if hit["key"] not in words]
            rows = self._milvus.by_keys(self._milvus.words, clock, missing, ["words"])
            words |= {row["key"]: row["words"] for row in rows}
            hits = [hit for hit in hits if _meets_words(words.get(hit["key"], ""), within.by_words)]
        return [_chunk_of(hit, known) for hit in hits]

    def _holders(
        self,
        clock: Clock,
        phrase: str,
        asked: Collection[str],
        within: Where,
        known: dict[str, PublishedWorkspace],
    ) -> Holders:
        """Return the chunks with a phrase, found among those with its rarest term."""
        rows = self._having(clock, asked, phrase.split())
        if rows is None:
            return Holders((), (), is_complete=False)
        rows = [
            row
            for row in rows
            if has_phrase(row["words"], phrase) and row["source"].partition(".")[0] in known
        ]
        if len(rows) > MOST_HOLDERS:
            return Holders((), (), is_complete=False)
        chunks = [_chunk_of(row, known) for row in rows]
        allowed = set(chunks)
        if within.expression or within.by_source or within.by_words:
            keys = [row["key"] for row in rows]
            expression = " and ".join(filter(None, [one_of("key", keys), within.expression]))
            some = (
                self._milvus.query(self._milvus.words, clock, expression, [*_HITS, "words"]) if keys else []
            )
            allowed = set(self._meeting(clock, some, within, known))
        return Holders(tuple(chunks), tuple(one in allowed for one in chunks))

    def _having(self, clock: Clock, asked: Collection[str], terms: Sequence[str]) -> list[Row] | None:
        """Return all chunks with the rarest of some terms, of which one may end in "*"; None: too many."""
        if not self._milvus.has_words:
            return None
        counts = self._counts.of(clock, asked, terms)
        rarest = min(terms, key=lambda term: counts.get(term, 0))
        if counts.get(rarest, 0) > MOST_READ:
            return None
        if rarest.endswith("*"):
            return self._any_of(clock, asked, self._counts.begun(clock, asked, rarest[:-1]))
        return self._any_of(clock, asked, [rarest])

    def _any_of(self, clock: Clock, asked: Collection[str], terms: Sequence[str]) -> list[Row] | None:
        """Return all chunks with one of some terms; None: more than MOST_READ."""
        if not terms or not asked:
            return []
        expression = "" if len(asked) == len(self._workspaces(clock)) else one_of("ws", asked)
        [hits] = self._milvus.search(
            self._milvus.words, clock, [" ".join(terms)], "sparse", MOST_READ + 1,
            filter=expression, output_fields=[*_HITS, "words"],
        )  # fmt: skip
        return None if len(hits) > MOST_READ else [{**hit["entity"], "key": hit["id"]} for hit in hits]

    def _ids(self, clock: Clock, asked: Collection[str], terms: Sequence[str], count: int) -> set[str]:
        """Return the keys of all chunks with one of some terms, at most *count* in the wanted workspaces."""
        if not count or not asked or not self._milvus.has_words:
            return set()
        expression = "" if len(asked) == len(self._workspaces(clock)) else one_of("ws", asked)
        [hits] = self._milvus.search(
            self._milvus.words, clock, [" ".join(terms)], "sparse", count, filter=expression
        )
        return {hit["id"] for hit in hits}

    # -- statistics ----------------------------------------------------------------------------------------

    def _with_forms(self, clock: Clock, asked: Collection[str], one: Forms, counts: Counts) -> int:
        """Return in how many chunks the forms of a word are."""
        total = sum(counts.get(form, 0) for form in one.forms)
        if one.others and 0 < total <= MOST_READ:  # the words of a chunk show its language
            rows = self._any_of(clock, asked, one.forms)
            alone = msgspec.structs.replace(_NOTHING, forms=(one,))
            return total if rows is None else _number_of(rows, alone)
        if 0 < total <= MOST_ROWS and counts.get(one.word, 0) <= MOST_ROWS:
            with_word = self._ids(clock, asked, [one.word], counts.get(one.word, 0))
            return len(self._ids(clock, asked, one.forms, total) - with_word)
        return total

    def _inexact(self, clock: Clock, wanted: Wanted, asked: Collection[str], counts: Counts) -> list[int]:
        """Return in how many chunks the forms of each word are, and the whole phrase."""
        remembered = partial(self._counts.remembered, clock, asked)
        found = [
            remembered(one, partial(self._with_forms, clock, asked, one, counts)) for one in wanted.forms
        ]
        if wanted.whole:
            terms = wanted.whole.split()
            alone = msgspec.structs.replace(_NOTHING, whole=wanted.whole)
            rows = self._having(clock, asked, terms)
            lowest = min(counts.get(term, 0) for term in wanted.whole.removesuffix("*").split())
            found.append(lowest if rows is None else _number_of(rows, alone))
        return found

    def _whole(
        self, clock: Clock, asked: Mapping[SourceKey, Collection[int] | None]
    ) -> dict[SourceKey, tuple[Packed, list[int], Shown]]:
        """Return sources with the ordinals and rows of the wanted chunks, None: all; gone ones are left out.

        A source that is replaced between the reads is read again.
        """
        known = self._workspaces(clock)
        found: dict[SourceKey, tuple[Packed, list[int], Shown]] = {}
        waiting = {f"{SOURCE}.{place_of(key)}": key for key in asked} if known else {}
        for consistency in (BOUNDED, STRONG) if waiting else ():
            sources: dict[SourceKey, tuple[Packed, dict[int, str]]] = {}
            wanted: dict[SourceKey, list[int]] = {}
            for name, value in self._milvus.values(clock, waiting, consistency=consistency).items():
                if value.workspace not in known:
                    continue
                key = waiting[name]
                one = Packed(value.head, value.body)
                some = asked[key]
                wanted[key] = [n for n in range(one.count) if some is None or n in some]
                rows = {n: chunk_id(key, n, value.revision) for n in wanted[key] if one.has_row(n)}
                sources[key] = one, rows
            ids = [id_ for _, rows in sources.values() for id_ in rows.values()]
            shown = {
                row["key"]: row["shown"]
                for row in self._milvus.by_keys(self._milvus.words, clock, ids, ["shown"], consistency)
            }
            for key, (one, rows) in sources.items():
                if all(id_ in shown for id_ in rows.values()):
                    found[key] = one, wanted[key], {n: shown[id_] for n, id_ in rows.items()}
            waiting = {name: key for name, key in waiting.items() if key in sources and key not in found}
            if not waiting:
                break
        return found

    def _heads(self, clock: Clock, keys: Iterable[str]) -> dict[SourceKey, PublishedSource]:
        """Return sources of published workspaces without their chunks."""
        known = self._workspaces(clock)
        values = self._milvus.values(clock, keys, has_body=False)
        long = [key for key, one in values.items() if not one.head]
        values |= self._milvus.values(clock, long)
        some = [Packed(one.head, one.body).source() for one in values.values() if one.workspace in known]
        return {one.key: one for one in some}

    # -- the list of workspaces ----------------------------------------------------------------------------

    def _workspaces(self, clock: Clock, *, is_fresh: bool = False) -> dict[str, PublishedWorkspace]:
        """Return the published workspaces by their digests; none before the collections exist."""
        with self._lock:
            at, known = self._listed
        if not is_fresh and time.monotonic() - at < WORKSPACES_S:
            return known
        milvus, now = self._milvus, time.monotonic()
        known = {}
        if milvus.exists(milvus.rows, clock):
            consistency = {"consistency": STRONG} if is_fresh else {}
            expression = f'key > "{WORKSPACE}." and key < "{WORKSPACE}/"'
            rows = milvus.query(
                milvus.rows, clock, expression, ["ws", "head"], limit=MOST_ROWS, **consistency
            )
            known = {
                row["ws"]: msgspec.msgpack.decode(unpacked(row["head"]), type=PublishedWorkspace)
                for row in rows
            }
        with self._lock:
            self._listed = (now, known)
        return known

    def _published(self, clock: Clock, workspace: str) -> PublishedWorkspace:
        """Return a workspace that may be written to."""
        published = self._workspaces(clock).get(digest(workspace))
        if published is None:
            published = self._workspaces(clock, is_fresh=True).get(digest(workspace))
        if published is None:
            raise StoreRefusedError("this workspace is not published: memctl team publish")
        return published

    def _forget_list(self) -> None:
        with self._lock:
            self._listed = (-WORKSPACES_S, {})


def make(config: TeamConfig) -> MilvusStore:
    """Return the store of a configuration."""
    return MilvusStore(config, team_token(config))


def _wanted_ids(known: Collection[str], wanted: Wanted) -> list[str]:
    """Return the digests of the wanted workspaces that are published."""
    if wanted.workspaces is None:
        return list(known)
    return [one for one in map(digest, wanted.workspaces) if one in known]


def _times(weights: Mapping[str, float]) -> dict[str, int]:
    """Return how often each term is to be in a query, which is how BM25 weighs it."""
    most = max(weights.values(), default=1.0)
    times = {term: max(1, round(MOST_TIMES * weight / most)) for term, weight in weights.items()}
    common = gcd(*times.values())
    return {term: count // common for term, count in times.items()}


def _chunk_of(hit: Row, known: dict[str, PublishedWorkspace]) -> ChunkKey:
    workspace, path = path_of(hit["source"])
    return ChunkKey(known[workspace].id, path, hit["ordinal"])


def _meets_words(words: str, filters: Iterable[Filter]) -> bool:
    return all(
        any(has_phrase(words, phrase) for phrase in one.values) == (one.name == "phrase") for one in filters
    )


def _number_of(rows: Iterable[Row], part: Wanted) -> int:
    """Return how many rows have the only part of a query."""
    counted = counter(part)
    return sum(counted(row["words"])[0] > 0 for row in rows)


if __name__ == "__main__":
    serve_child(make)

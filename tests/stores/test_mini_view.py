"""A search through a mini view over a store answers as a search of the index itself."""

import array
import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import astuple, replace

import pytest
from tests_support import Notes, WordHashEmbedder, WordTokenizer

from memd.search.explain import explain
from memd.search.keyword import POOL
from memd.search.search import Answer, begin, search
from memd.search.why import why
from memd.stores.lean import lean_of
from memd.stores.local import LocalStore
from memd.stores.store import PublishedWorkspace, SourceKey, Wanted
from memd.stores.team_search import StoreSearch, search_store, why_store, without_far_ranks

WORKSPACE = PublishedWorkspace("w1", "notes", "here", "me", "word-hash")
LONG = "\n\n".join(
    f"## Part {number}\n\nThe pump of basin {number} feeds heron pond {number % 5} by weir {number * 7}."
    f" Every part has its own gauge, valve and inspection date, written down by the keeper {number}."
    + " Water level, sluice, reed, alder and willow are noted each week."
    * 6
    for number in range(40)
)
POND = "# Heron pond\n\nThe heron pond is fed by the upper weir. Reeds grow along the shore.\n"
TEXTS = {
    "ponds/heron.md": POND,
    "ponds/heron-copy.md": POND,
    "ponds/heron (conflicted copy 2026-05-01).md": POND + "\nAn island was added by the other machine.\n",
    "ponds/long.md": f"# All ponds\n\n{LONG}\n",
    "ponds/weir.md": "---\ntags: [water]\nstatus: published\npriority: 3\n---\n# Weir\n\nOpen it in May.",
    "ponds/old-weir.md": "---\nvalid_until: 2026-01-31\n---\n# Weir key\n\nThe weir's key is in the mill.",
    "ponds/plan.md": "# Plan\n\nDig the pond beside the alder, then plant reeds around the weir.\n",
    "other/plan.md": "# Plan\n\nBuild the bridge to the island and paint its railing green.\n",
    "new/water.md": "---\nsupersedes: ponds/plan.md\n---\n# Water plan\n\nNo digging; a tank is bought.\n",
    "new/tank.md": "---\nsupersedes: new/water.md\n---\n# Tank\n\nThe cistern stands behind the barn.\n",
    "new/unclear.md": "---\nsupersedes: plan\n---\n# Unclear\n\nThis replaces some plan or another.\n",
    "2026-05-20-log.md": "# Log\n\nCleaned the weir, saw a heron, repaired the sluice gate.\n",
    "2025-05-20-log.md": "# Log\n\nCleaned the weir, saw two herons, repaired the sluice gate.\n",
    "2024-02-01-log.md": "# Log\n\nThe sluice was frozen; the heron had left.\n",
    "code/query.md": "# Code\n\nSee `query.sql` and the function start_at of EventTypes for AB-1234.\n",
    "code/many.md": "# Other code\n\nA query; SQL is a language. The event types start at zero.\n",
    "forms/one.md": "# Gardening\n\nThe gardener was planting trees and pruned the hedges.\n",
    "forms/two.md": "# Garden\n\nPlant a tree before you prune a hedge in the gardens.\n",
    "forms/three.md": "# Jardin\n\nLe jardin est dans la cour avec des arbres, il est sur une colline.\n",
    "cjk/zh.md": "# 会议\n\n周一的会议记录在服务器上。合并冲突 git 要手动解决。\n",
    "cjk/ja.md": "# 散歩\n\n毎朝の散歩は池のまわりを歩くことです。\n",
    "cjk/zh2.md": "# 冲突\n\n冲突很多，记录也很多，git rebase 很难。会议。\n",
    # Of its many chunks with the word, candidates stand between others.
    "cjk/long.md": "# 水门\n\n"
    + "\n\n".join(
        f"## 第{number}\n\n"
        + ("水门在磨坊旁边。" if number % 3 else "磨坊。") * (1 + number % 4) * 3
        + f" item{number} 池塘边有许多芦苇和柳树，还有苍鹭在水里走来走去。" * 12
        for number in range(260)
    ),
    "memory/archives/claude/talk.md": "---\nsource:\n  session: s-77\ncreated: 2026-04-01\n---\n# Talk\n\n"
    "We spoke about the turbine of the mill and its bearings.\n",
    "memory/turbine/bearing-a1b2c3.md": "---\nid: a1b2c3\nsource:\n  session: s-77\n  origin: agent\n---\n"
    "# Bearing\n\nThe bearing of the turbine takes grease number two.\n",
    "memory/turbine/grease-d4e5f6.md": "---\nid: d4e5f6\nsupersedes: a1b2c3\n---\n# Grease\n\n"
    "Grease number three from now on.\n",
    # More than a pool holds, so that there are chunks beside the candidates.
    **{
        f"fill/{number:03}.md": f"# Filler {number}\n\n"
        + " ".join(f"word{number * 13 % 17} item{(number + k) % 23} thing{k % 7}" for k in range(number % 40))
        + f" The sluice of mill {number} is checked by the miller.\n"
        for number in range(200)
    },
}
QUERIES = [
    "island of the heron pond",
    "miller checks the sluice",
    "heron pond",
    "who feeds the heron pond",
    "weir",
    "key of the weir",
    "dig the pond beside the alder",
    "cistern",
    "plan",
    "sluice gate",
    "query.sql",
    "start_at",
    "AB-1234 ticket",
    "EventTypes",
    "gardens",
    "pruning hedges",
    "herron pond",
    "gardenner of the weir",
    '"heron pond" reeds',
    '"saw a heron"',
    "weir -heron",
    'sluice -"saw a heron"',
    "weir path:ponds/*",
    "path:ponds/*",
    "tag:water weir",
    "field:priority>=2 weir",
    "field:status!=published weir",
    "since:2026-01-01 log",
    "weir until:2025-12-31",
    "会议",
    "会议记录",
    "记",
    "合并冲突 git",
    "在磨坊旁边",
    "冲突 记录",
    "散歩",
    "turbine bearings",
    "mill",
    "keeper gauge valve 12",
    "word5 item7",
    "the of and",
    "!!!",
    "nothing-like-this-anywhere",
]
MODES = [
    {"mode": "hybrid"},
    {"mode": "keyword"},
    {"mode": "vector"},
    {"mode": "hybrid", "fusion": "rrf", "min_score": 0.0, "limit": 15, "per_source": 5},
]


class PiecesTokenizer(WordTokenizer):
    """Words of the notes as whole pieces, others in pieces of three letters, which a misspelling is."""

    known = frozenset(re.findall(r"\w+", " ".join(TEXTS.values())))

    def spans(self, text: str) -> list[tuple[int, int]]:
        whole = super().spans(text)
        return [
            (at, min(at + 3, end))
            for start, end in whole
            for at in range(start, end, end - start if text[start:end] in self.known else 3)
        ]


class SmoothEmbedder(WordHashEmbedder):
    """No two vectors are at right angles, where the last digit decides whether a cosine is above 0."""

    tokenizer = PiecesTokenizer()

    def embed_query(self, text: str) -> bytes:
        sums = [1e-3] * self.dim
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.blake2b(word.encode(), digest_size=self.dim).digest()
            sums = [value + byte - 127.5 for value, byte in zip(sums, digest, strict=True)]
        length = math.sqrt(sum(value * value for value in sums))
        return array.array("f", [value / length for value in sums]).tobytes()


@pytest.fixture(scope="module")
def ponds(tmp_path_factory) -> Iterator[Notes]:
    notes = Notes(tmp_path_factory.mktemp("ponds"), embedder=SmoothEmbedder())
    notes.save(TEXTS)
    notes.save({"late.md": "# Late\n\nA heron came late to the weir, without a vector.\n"}, embed=False)
    notes.save({"gone.md": "# Gone\n\nThe heron pond and the weir are gone.\n"})
    notes.remove("gone.md")
    yield notes
    notes.index.close()


def store_of(notes: Notes, kind: type[LocalStore] = LocalStore) -> StoreSearch:
    store = kind(WORKSPACE, notes.index.view)
    return StoreSearch(store, notes.embedder.tokenizer, notes.embedder.model_id)


def request_of(notes: Notes, text: str, **how):
    made = notes.request(text, alive=lambda _: True, languages=("english", "french"), **how)
    return replace(made, query_vec=None) if not made.query.text else made


def straight(notes: Notes, text: str, **how):
    """Ask the index as the daemon does; return the answer with its explanation."""
    plain = request_of(notes, text, **how)
    with notes.index.view() as view:
        prepared, words = begin(view, plain, notes.embedder.tokenizer)
        query = prepared.query
        vector = notes.embedder.embed_query(query.text) if query.corrected and plain.query_vec else None
        answer = search(view, replace(prepared, corrected_vec=vector), words)
        return answer, explain(view, answer), placed(view, answer)


def through_store(notes: Notes, text: str, *, kind: type[LocalStore] = LocalStore, **how):
    """Ask the same through a mini view over the index as a store."""
    plain = request_of(notes, text, **how)

    def embed(prepared):
        vector = notes.embedder.embed_query(prepared.query.text) if plain.query_vec else None
        return replace(prepared, query_vec=vector)

    made = search_store(store_of(notes, kind), plain, embed)
    return made.answer, made.explained(), placed(made.view, made.answer)


def placed(view, answer: Answer):
    """Return all that a hit shows, without ids."""

    def at(number):
        source, first, last = view.lines([number])[number]
        return view.snapshot.sources[source].path, first, last

    return [
        {
            "at": at(hit.candidate.id),
            "scores": [
                hit.candidate.merged, hit.candidate.score, hit.candidate.order,
                hit.candidate.vector_score, hit.candidate.keyword_score, hit.candidate.decay,
            ],
            "ranks": (hit.candidate.vector_rank, hit.candidate.keyword_rank, hit.candidate.tier),
            "weights": hit.candidate.weights,
            "source": replace(hit.source, id=0),
            "chunk": astuple(replace(hit.chunk, id=0, source=0)),
            "passage": hit.passage,
            "snippet": hit.snippet,
            "folded": [(place.path, place.start_line, place.end_line) for place in hit.folded],
            "superseded": hit.superseded_by,
            "expired": hit.expired,
            "entries": hit.entries,
        }
        for hit in answer.hits
    ]  # fmt: skip


def near(value):
    """Return a value whose numbers compare to 1e-6."""
    if isinstance(value, float):
        return pytest.approx(value, abs=1e-6)
    if isinstance(value, dict):
        return {key: near(one) for key, one in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(near(one) for one in value)
    return value


def test_the_questions_meet_each_rule(ponds):
    """Otherwise the comparison below would say nothing about a rule."""
    seen = set()
    for text in QUERIES:
        answer, (_, each), _ = straight(ponds, text, mode="hybrid")
        query = answer.prepared.query
        seen |= {"corrected"} if query.corrected else set()
        seen |= {"forms"} if query.forms else set()
        seen |= {f"tier {hit.candidate.tier}" for hit in answer.hits}
        seen |= {rule for rule in ("folded", "superseded_by", "expired", "entries") for hit in answer.hits
                 if getattr(hit, rule)}  # fmt: skip
        seen |= {rule for rule in ("named", "ahead_of", "unseen") for one in each if getattr(one, rule)}
        seen |= {"joined" for hit in answer.hits if len(hit.parts) > 1}
        seen |= {"decay" for hit in answer.hits if hit.candidate.decay < 1}
        seen |= (
            {"outside pools"} if answer.judged.keyword and len(answer.judged.keyword.pool) == POOL else set()
        )
    assert seen >= {
        "corrected", "forms", "tier fts", "tier trigram", "tier ngram", "folded", "superseded_by", "expired",
        "entries", "named", "ahead_of", "unseen", "decay", "joined", "outside pools",
    }  # fmt: skip


@pytest.mark.parametrize("how", MODES, ids=lambda how: "-".join(map(str, how.values())))
@pytest.mark.parametrize("text", QUERIES)
def test_both_ways_agree(ponds, text, how):
    """In hits, order, scores, confidence, what is folded, superseded, corrected, and in each explanation."""
    answer, explained, hits = straight(ponds, text, **how)
    other, other_explained, other_hits = through_store(ponds, text, **how)
    assert [hit["at"] for hit in other_hits] == [hit["at"] for hit in hits]
    assert other_hits == near(hits)
    assert other.confidence == answer.confidence
    assert other.mode == answer.mode
    query, other_query = answer.prepared.query, other.prepared.query
    assert (other_query.corrected, other_query.forms) == (query.corrected, query.forms)
    whole, each = explained
    other_whole, other_each = other_explained
    assert near_record(other_whole) == near(near_record(whole))
    in_pools = [near_record(without_far_ranks(one)) for one in each]
    assert [near_record(one) for one in other_each] == near(in_pools)


WHY = [
    ("heron pond", "ponds/heron-copy.md", None),  # folded
    ("heron pond", "ponds/weir.md", None),
    ("miller checks the sluice", "fill/007.md", None),
    ("miller checks the sluice", "fill/197.md", None),
    ("weir path:other/*", "ponds/weir.md", None),  # filtered
    ("weir field:priority>=4", "ponds/weir.md", None),
    ("weir field:priority>=2", "ponds/weir.md", None),
    ('"saw a heron"', "2025-05-20-log.md", None),
    ("weir -heron", "2026-05-20-log.md", None),
    ("keeper gauge valve 12", "ponds/long.md", 60),
    ("keeper gauge valve 12", "ponds/long.md", None),
    ("cistern", "cjk/zh.md", None),  # outside both pools, or below the floor
    ("dig the pond beside the alder", "new/tank.md", None),
    ("nothing-like-this-anywhere", "forms/one.md", None),
]


@pytest.mark.parametrize("how", MODES[:2], ids=lambda how: "-".join(how.values()))
@pytest.mark.parametrize(("text", "path", "line"), WHY)
def test_both_ways_agree_why_a_note_is_not_among_the_hits(ponds, text, path, line, how):
    """In the stage, its values, the rank, and the scores of a chunk outside the pools."""
    plain = request_of(ponds, text, **how)
    with ponds.index.view() as view:
        prepared, words = begin(view, plain, ponds.embedder.tokenizer)
        query = prepared.query
        vector = ponds.embedder.embed_query(query.text) if query.corrected and plain.query_vec else None
        prepared = replace(prepared, corrected_vec=vector)
        one = told(view, why(view, prepared, view.snapshot.source_at(path), line, words))

    def embed(prepared):
        vector = ponds.embedder.embed_query(prepared.query.text) if plain.query_vec else None
        return replace(prepared, query_vec=vector)

    other = why_store(store_of(ponds), plain, embed, SourceKey(WORKSPACE.id, path), line)
    assert told(other.view, other.verdict) == near(one)


def told(view, verdict):
    """Return a verdict as plain values without ids."""
    return {
        "stage": verdict.stage,
        "chunk": verdict.chunk and (verdict.chunk.start_line, verdict.chunk.text),
        "explained": verdict.explained and near_record(without_far_ranks(verdict.explained)),
        "rank": verdict.rank,
        "missed": verdict.missed,
        "last": verdict.last and (verdict.last.path, verdict.last.merged),
        "into": verdict.into and (verdict.into.path, verdict.into.start_line),
        "better": verdict.better,
        "confidence": verdict.confidence,
    }


def test_the_evidence_is_of_the_sources_as_they_are_by_then(tmp_path):
    """What was deleted after the candidates were asked for is left out; what was written anew is new."""
    notes = Notes(tmp_path, embedder=SmoothEmbedder())
    notes.save({"a.md": "A heron.", "b.md": "Two herons, one heron."})
    store, wanted = LocalStore(WORKSPACE, notes.index.view), Wanted(("heron",), (), None, None, (), 10)
    found = store.candidates(wanted, 5)
    assert {key.path for key in found.by_words} == {"a.md", "b.md"}
    notes.remove("a.md")
    assert [chunk.text for chunk in store.lean(found.by_words, wanted, 5).chunks] == [
        "Two herons, one heron."
    ]
    notes.save({"a.md": "Another heron."})
    texts = {chunk.text for chunk in store.lean(found.by_words, wanted, 5).chunks}
    assert texts == {"Another heron.", "Two herons, one heron."}
    notes.index.close()


class WholeStore(LocalStore):
    """Makes the lean form of whole sources, as stores do that keep these."""

    def lean(self, chunks, wanted, deadline_s):
        sources = tuple(dict.fromkeys(SourceKey(one.workspace, one.path) for one in chunks))
        return lean_of(self.evidence(sources, deadline_s), chunks, wanted)


@pytest.mark.parametrize("text", QUERIES)
def test_the_lean_form_is_the_same_made_of_whole_sources(ponds, text):
    """What a store that keeps whole sources derives of them gives the same answer."""
    answer, _, hits = straight(ponds, text, mode="hybrid")
    other, _, other_hits = through_store(ponds, text, mode="hybrid", kind=WholeStore)
    assert other_hits == near(hits)
    assert other.confidence == answer.confidence


def near_record(record):
    """Return a record as plain values."""
    import msgspec

    return msgspec.to_builtins(record)

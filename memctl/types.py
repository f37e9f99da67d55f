"""Types of the daemon's answers. Made by ``python -m tools.generate_client``; do not edit.

Imported for types alone.
"""

from typing import Literal, NotRequired, TypedDict


class ServerLimits(TypedDict):
    """What a client may send and open."""

    request_bytes: int
    answer_bytes: int
    in_flight_per_connection: int
    connections: int


class HelloResult(TypedDict):
    """Versions, features and limits."""

    protocol: int
    api_level: int  # counts up with every key or method that is added
    api_compatible: int  # the oldest level whose clients still understand the answers
    features: list[str]
    server_version: str
    instance_id: str  # another one after each start
    pid: int
    limits: ServerLimits
    model_id: str | None
    index_generation: int | None  # of the workspace that is meant; null where none is
    degraded: list[str]  # codes of what is missing


class PingResult(TypedDict):
    """Who is there."""

    pong: bool
    instance_id: str
    pid: int


class ModelStatus(TypedDict):
    """One model in use."""

    provider: str
    state: str
    id: str | None
    error: str | None


class ServerStatus(TypedDict):
    """The daemon."""

    version: str
    pid: int
    instance_id: str
    uptime_s: float
    memory_mb: float | None  # null where the system does not say
    models: list[ModelStatus]
    errors: list[str]
    sqlite: str
    onnxruntime: str
    loop_lag_ms: float  # what every request waits, whatever it asks
    paused_until: float | None  # unix seconds: when embedding goes on; null where it is not paused


class LeftSeconds(TypedDict):
    """How long open work will take about."""

    words: float | None  # null: nothing is known yet
    vectors: float | None


class SkippedFile(TypedDict):
    """A file that the patterns select and that is not indexed."""

    path: str
    reason: str


class SourceWarning(TypedDict):
    """A file that is not indexed as it could be."""

    path: str
    warning: str


class ProbeOutcome(TypedDict):
    """How the last `health` or `check` went."""

    ok: bool
    detail: str
    at: float  # unix seconds


class ModelChange(TypedDict):
    """Another model's vectors, built beside the old ones."""

    model_id: str
    done: int
    total: int


class WorkProgress(TypedDict):
    """How far some work is."""

    stage: str
    done: int
    total: int


class SidecarCounts(TypedDict):
    """What was done with .vec files."""

    read: int
    written: int
    ignored: dict[str, int]  # reason → how many


class WorkspaceStatus(TypedDict):
    """All that is known of one workspace; of one that is not open `root`, `state` and `errors` alone."""

    root: str
    state: Literal["starting", "scanning", "busy", "ready", "missing", "error"]  # error: it cannot be opened
    sources: NotRequired[int]  # of one that is open
    chunks: NotRequired[int]
    errors: NotRequired[list[str]]  # newest last; of one that is not open: why
    first: NotRequired[bool]  # this and the next two as in `IndexState`
    renewed: NotRequired[Literal["", "updated", "damaged"]]
    first_words: NotRequired[bool]
    pending: NotRequired[int]
    pending_files: NotRequired[int]
    pending_vectors: NotRequired[int]
    generation: NotRequired[int]
    lag_ms: NotRequired[int]
    embedded: NotRequired[float | None]
    left_s: NotRequired[LeftSeconds]
    vectors: NotRequired[int]  # chunks that the vector arm can see
    unreadable: NotRequired[int]  # chunks that it never will: in a script that the model does not read
    beyond: NotRequired[int]  # chunks beyond the first 1,500 of a note: they get no vector, either
    skipped: NotRequired[list[SkippedFile]]  # the first of them
    skipped_total: NotRequired[int]
    warnings: NotRequired[list[SourceWarning]]  # the first of them
    warnings_total: NotRequired[int]
    copies: NotRequired[list[str]]  # conflict copies of sync programs, the first of them
    copies_total: NotRequired[int]
    templates: NotRequired[list[str]]  # folders of templates of Obsidian vaults, which are left out
    last_scan: NotRequired[float | None]  # unix seconds
    last_index: NotRequired[float | None]  # unix seconds: when everything was searchable
    last_health: NotRequired[ProbeOutcome | None]
    model_id: NotRequired[str]  # of the vectors in the index
    provider: NotRequired[str]
    last_check: NotRequired[ProbeOutcome | None]
    watching: NotRequired[str]  # by which means changes are heard of
    gone: NotRequired[int]  # sources that left the disk and are kept for a while
    held: NotRequired[str]  # why they are kept for longer
    building: NotRequired[ModelChange | None]
    rebuilding: NotRequired[WorkProgress | None]
    sidecars: NotRequired[SidecarCounts | None]  # null where they are off
    damaged_rows: NotRequired[int]
    size_bytes: NotRequired[int]  # of the index
    set_aside: NotRequired[list[str]]  # folders of older indexes, with what notes said then
    degraded: NotRequired[list[str]]  # codes of what is not as it should be


class StatusResult(TypedDict):
    """The server and its workspaces."""

    server: ServerStatus
    workspaces: list[WorkspaceStatus]


class HealthCheck(TypedDict):
    """How the search in one workspace went."""

    name: str  # the workspace's root
    ok: bool
    detail: str


class HealthResult(TypedDict):
    """How a real search in each workspace went."""

    ok: bool
    checks: list[HealthCheck]


class IndexState(TypedDict):
    """How fresh an answer is."""

    state: Literal["starting", "scanning", "busy", "ready", "missing"]
    first: bool  # not everything has been searchable once
    # why, where it is not the first index: memd was updated, or the old one was damaged
    renewed: Literal["", "updated", "damaged"]
    first_words: bool  # not everything has been searchable by its words once
    pending: int  # files and vectors that are not searchable yet
    pending_files: int
    pending_vectors: int
    generation: int  # counts commits
    lag_ms: int  # age of the oldest change that is not searchable yet
    embedded: float | None  # share of the chunks that the model reads that have a vector; null without one
    left_s: LeftSeconds


class VectorEvidence(TypedDict):
    """What the vector arm says of a hit."""

    rank: int | None
    score: float | None  # null: it could not see the chunk


class KeywordEvidence(TypedDict):
    """What the keyword arm says of a hit."""

    rank: int | None
    score: float | None
    tier: str | None  # which of its tiers found it


class ArmEvidence(TypedDict):
    """What both arms say of a hit."""

    vector: VectorEvidence
    keyword: KeywordEvidence


class UsedWeights(TypedDict):
    """The weights that were used for a hit."""

    vector: float
    keyword: float


class HitSource(TypedDict):
    """Who wrote a source."""

    origin: str  # "human" or "agent"
    entry: NotRequired[str]  # of a daily entry: the id that `forget` takes


class Location(TypedDict):
    """Some lines of a source."""

    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive
    end_line: int


class VectorPart(TypedDict):
    """What the vector arm says of a chunk."""

    rank: int  # among the candidates of the arm; by its own cosine among all where it is none of them
    in_pool: bool
    cosine: float  # of the chunk
    source_cosine: float  # mean of some chunks of its source
    source_share: float
    score: float  # (1 - share) · cosine + share · source_cosine, not below 0
    weight: float
    part: float  # weight · score


class TermPart(TypedDict):
    """What one term of the query says of a chunk."""

    term: str
    prefix: bool  # every term that begins with it
    times: int  # in the query
    document_frequency: int  # chunks that it stands in
    idf: float
    share: float  # of that in the parts; below 1 where a word of the query was taken for it
    count: int  # in the chunk
    first_count: int  # in the first chunk of its source
    file_count: int  # in all of them
    part: float  # of `bm25`
    first_part: float  # of `first_bm25`
    file_part: float  # of `file_bm25`


class Length(TypedDict):
    """How a length counts in BM25."""

    terms: int
    norm: float  # K1 (1 - B + B · terms / average): as often must a term stand there to say half of its idf


class Shares(TypedDict):
    """How much the words of each count for a chunk; they sum up to 1."""

    chunk: float
    first: float  # the first chunk of its source
    file: float  # its source, as one long chunk


class KeywordPart(TypedDict):
    """What the keyword arm says of a chunk."""

    rank: int  # among the candidates of the arm; by its own words among all where it is none of them
    in_pool: bool
    tier: str
    terms: list[TermPart]  # those of the query that stand in its source
    lacking: list[str]  # the others
    length: Length
    first_length: Length
    file_length: Length
    bm25: float  # the sum of the terms' parts
    first_bm25: float  # of their first parts
    file_bm25: float  # of their file parts
    shares: Shares  # how much each of the three counts
    evidence: float  # Σ share · bm25 over the three
    reachable: float  # Σ idf · times
    score: float  # tanh(2 · evidence / reachable)
    weight: float
    part: float  # weight · score


class NamedPart(TypedDict):
    """That the query names the chunk: it comes before all that have fewer of the words."""

    words: list[str]  # of the query, in pieces to the model, that stand in a few chunks only
    score: float  # of the keyword arm by the words that name a chunk alone


class Decay(TypedDict):
    """What age leaves of a score."""

    factor: float
    dated: bool  # its name starts with a day; what is not dated does not decay
    age_days: int
    half_life_days: float
    floor: float  # share that age leaves


class Explained(TypedDict):
    """Why one chunk has its score."""

    vector: VectorPart | None  # None: see `unseen`
    keyword: KeywordPart | None
    # why the weights are not those that were asked for
    unseen: list[
        Literal["vector-arm-did-not-run", "keyword-arm-did-not-run", "no-vector-yet", "script", "long"]
    ]
    named: NamedPart | None  # None: the query does not name it
    merged: float  # the sum of the parts, or the score of the words that name it where that is more
    decay: Decay
    score: float  # merged · decay
    superseded_by: list[str]  # paths of what holds in its place, and comes before it where both match
    ahead_of: str | None  # path of what it supersedes, whose better place and order it has; None: its own
    # What it is sorted by: the score, or under rrf Σ 1 / (60 + rank) · decay; 1 more for each word that names
    # it. None where no pool has it.
    order: float | None


class SearchHit(TypedDict):
    """One place of an answer: its best chunk, with the chunks in front and behind where these match, too."""

    id: int  # of its best chunk
    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive; hits do not overlap
    end_line: int
    heading: str  # the headings above it, outermost first, joined by " > "
    title: str
    snippet: str
    score: float  # in [0, 1], the same meaning in every mode
    arms: ArmEvidence
    weights: UsedWeights
    decay: float  # what age leaves of the score, in (0, 1]
    date: str  # YYYY-MM-DD
    # what happened then: the file's name or its front matter says it, or its last change
    date_of: Literal["name", "updated", "created", "changed"]
    tags: list[str]
    source: HitSource
    match_line: int
    match_column: int  # in bytes, from 1
    match_text: str  # that line
    folded: list[Location]  # where nearly the same text stands
    superseded_by: list[str]  # paths of the notes that hold in its place: the newest of its chain; else empty
    explanation: NotRequired[Explained]  # with `explain`


class WithoutMinus(TypedDict):
    """What a query finds if the words that it excludes are looked for."""

    hits: int
    best: Location | None  # where the first of them is


class Term(TypedDict):
    """One term of a query."""

    text: str
    prefix: bool  # a character of a spaceless script: every term that begins with it
    times: int  # in the query
    document_frequency: int  # chunks that it stands in
    idf: float
    share: float  # of that in a chunk's score; below 1 where a word was taken for it


class Word(TypedDict):
    """A word of a query that is several pieces to the model."""

    text: str  # as it was typed, without signs around it
    pieces: int
    is_read: bool  # the pieces are long enough to mean something


class Filter(TypedDict):
    """What a chunk or its source must have, or must not."""

    filter: str  # the name of one of `FILTER_KEYS`, or one of `OF_WORDS`
    value: str


class Weights(TypedDict):
    """How much each arm's score counts; renormalised over the arms that saw a chunk."""

    vector: float
    keyword: float


class Stages(TypedDict):
    """How many chunks there are, and how many each stage dropped; the last number is what is left."""

    chunks: int
    filtered: int
    outside_pools: int  # neither arm has it among its best
    below_floor: int
    gone: int  # its source left the disk a moment ago
    folded: int  # nearly the same as a better one
    joined: int  # next to a better one of its source, and shown with it
    per_source: int  # its source had its places already
    limit: int
    hits: int


class AnswerExplanation(TypedDict):
    """How an answer was made, and which arm had no say."""

    terms: list[Term]  # that the keyword arm looks for
    left_out: list[str]  # function words that it does not
    spelled: list[Word]  # words that are several pieces to the model
    read: float  # how much of the query the model reads; that share of the vector arm's weight is left
    filters: list[Filter]
    tier: str | None  # of the keyword arm; None where that did not run
    average_length: float  # of a chunk, in terms
    fusion: str
    weights: Weights  # that were asked for
    half_life_days: float
    decay_floor: float  # share of a score that age leaves
    floor: float  # min_score
    limit: int
    per_source: int
    pool: int  # candidates of each arm at most
    vector_pool: int | None  # those there were; None where the arm did not run
    keyword_pool: int | None
    stages: Stages
    model_id: str | None  # of the query's vector
    vector_arm: str | None  # why it had no say; null where it had


class SearchResult(TypedDict):
    """Ranked hits."""

    took_ms: float  # the dispatcher measures it
    workspace: str  # its root
    mode: Literal["hybrid", "keyword", "vector"]  # the arms that answered
    degraded: list[str]  # codes of what was missing
    index: IndexState
    synced: NotRequired[bool]  # with `sync`: whether what was saved before is searchable
    timings_ms: dict[str, float]  # step → how long it took; "keyword" may run beside "embed"
    hits: list[SearchHit]
    confidence: Literal["strong", "weak", "none"]  # how good the best match is
    corrected: dict[str, str]  # words that nobody knows, as they were typed → what was looked for as well
    without: list[str]  # words and phrases that a minus excluded
    without_minus: WithoutMinus | None  # null but where they are excluded and nothing is left
    model_id: str | None  # of the query's vector
    not_utf8: list[str]  # the first few sources that nothing is found in, for their text is not UTF-8
    explanation: NotRequired[AnswerExplanation]  # with `explain`


class RecallSource(TypedDict):
    """Lines that were sent."""

    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive
    end_line: int
    id: int
    score: float | None  # null: of the core, which goes first whatever is asked
    # how good a match these lines are; null: of the core
    confidence: Literal["strong", "weak", "none"] | None
    date: str  # YYYY-MM-DD
    origin: str  # "human" or "agent"
    superseded_by: list[str]  # as in a search


class RecallOmission(TypedDict):
    """Lines that were left out."""

    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive
    end_line: int
    id: int
    score: float | None  # null: of the core, which goes first whatever is asked
    # how good a match these lines are; null: of the core
    confidence: Literal["strong", "weak", "none"] | None
    date: str  # YYYY-MM-DD
    origin: str  # "human" or "agent"
    superseded_by: list[str]  # as in a search
    reason: str


class RecallResult(TypedDict):
    """What is known, as text for a prompt within a budget."""

    took_ms: float  # the dispatcher measures it
    workspace: str  # its root
    mode: Literal["hybrid", "keyword", "vector"]  # the arms that answered
    degraded: list[str]  # codes of what was missing
    index: IndexState
    synced: NotRequired[bool]  # with `sync`: whether what was saved before is searchable
    timings_ms: dict[str, float]  # step → how long it took; "keyword" may run beside "embed"
    text: str  # framed so that no text of a note can end its frame
    format: Literal["markdown", "xml"]
    tokens: int  # of all of `text`
    budget_tokens: int
    estimator: str  # how tokens are counted
    sources: list[RecallSource]
    omitted: list[RecallOmission]
    confidence: Literal["strong", "weak", "none"]
    corrected: dict[str, str]
    without: list[str]  # as in a search
    without_minus: WithoutMinus | None  # as in a search
    model_id: str | None


class NamedChunk(TypedDict):
    """The chunk that a request named."""

    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive
    end_line: int
    id: int
    heading: str


class LinkOut(TypedDict):
    """A link of a note to another one."""

    kind: Literal["text", "related", "supersedes"]  # [[in the text]], or the key of the front matter
    target: str  # as it is written, without alias and heading
    path: str | None  # of the note that is meant; null: none is called that, or of a key not one alone
    line: int | None  # 1-based; null: in the front matter


class LinkIn(TypedDict):
    """A link of another note to one."""

    kind: Literal["text", "related", "supersedes"]  # as in `LinkOut`
    path: str  # of the note that it stands in
    title: str
    line: int | None  # the same


class NoteLinks(TypedDict):
    """The links of a note, the first of each direction."""

    outgoing: list[LinkOut]
    outgoing_total: int
    incoming: list[LinkIn]
    incoming_total: int


class SimilarResult(TypedDict):
    """Chunks of other sources that are most like one."""

    took_ms: float  # the dispatcher measures it
    workspace: str  # its root
    mode: Literal["hybrid", "keyword", "vector"]  # the arms that answered
    degraded: list[str]  # codes of what was missing
    index: IndexState
    synced: NotRequired[bool]  # with `sync`: whether what was saved before is searchable
    timings_ms: dict[str, float]  # step → how long it took; "keyword" may run beside "embed"
    to: NamedChunk
    superseded_by: list[str]  # as in a search, of the source of `to`
    links: NoteLinks  # of that source
    hits: list[SearchHit]


class LastHit(TypedDict):
    """The last hit of an answer."""

    path: str
    score: float


class ChunkLines(TypedDict):
    """A chunk of a source that is known."""

    id: int
    start_line: int
    end_line: int
    heading: str


class WhyFacts(TypedDict):
    """The values that the sentence of `why` quotes; docs/explaining.md says which stage has which."""

    reason: NotRequired[str]  # of not-a-source and not-indexed
    place: NotRequired[str]  # of not-a-source: the path, or the folder above it
    rule: NotRequired[str]  # of not-a-source: the pattern that says so, and where it stands
    close: NotRequired[list[str]]  # of missing: sources with such a name
    date: NotRequired[str]  # of a source that is indexed, as all below
    tags: NotRequired[list[str]]
    rank: NotRequired[int | None]  # among all hits
    limit: NotRequired[int]
    floor: NotRequired[float]  # min_score
    filters: NotRequired[list[Filter]]  # that keep it out
    vector_arm: NotRequired[str | None]  # why it had no say; null where it had
    better: NotRequired[list[int]]  # ranks of its source's hits
    into: NotRequired[Location | None]  # the chunk that it is folded into, or shown with
    last: NotRequired[LastHit | None]
    chunk: NotRequired[ChunkLines]  # that went furthest
    explanation: NotRequired[Explained]  # of its scores
    has: NotRequired[list[str]]  # terms of the query that stand in it
    lacks: NotRequired[list[str]]


class WhyResult(TypedDict):
    """The stage that dropped a source from an answer."""

    took_ms: float  # the dispatcher measures it
    workspace: str  # its root
    mode: Literal["hybrid", "keyword", "vector"]  # the arms that answered
    degraded: list[str]  # codes of what was missing
    index: IndexState
    synced: NotRequired[bool]  # with `sync`: whether what was saved before is searchable
    timings_ms: dict[str, float]  # step → how long it took; "keyword" may run beside "embed"
    path: str  # relative to the workspace
    line: int | None  # that was asked about
    stage: str  # docs/explaining.md lists them
    text: str
    advice: str
    facts: WhyFacts
    superseded_by: list[str]  # as in a search
    confidence: Literal["strong", "weak", "none"] | None  # of the answer; null where the source is not in it
    corrected: dict[str, str]  # as in a search


class GetResult(TypedDict):
    """A source or some of its lines."""

    workspace: str
    path: str
    title: str
    tags: list[str]
    start_line: int
    end_line: int
    lines: int  # of the whole source
    hash: str  # of the whole file
    text: str
    superseded_by: list[str]  # as in a search
    links: NoteLinks  # of the whole source


class HistoryNote(TypedDict):
    """One step of a history."""

    path: str
    title: str
    date: str  # YYYY-MM-DD
    date_of: Literal["name", "updated", "created", "changed"]
    created: str | None  # as its front matter says; null where it says nothing
    updated: str | None
    origin: str  # "human" or "agent"
    supersedes: list[str]  # paths of those that it names itself
    superseded_by: list[str]  # paths of those that name it themselves


class HistoryResult(TypedDict):
    """How it came to what a note says, and what became of that."""

    took_ms: float  # the dispatcher measures it
    workspace: str
    path: str  # of the note that was asked about
    notes: list[HistoryNote]  # the oldest first; of very many the last ones
    notes_total: int
    unresolved: list[str]  # what the note says it supersedes and no note, or no note alone, is called


class SourceEntry(TypedDict):
    """One indexed file."""

    path: str  # relative to the workspace
    title: str
    tags: list[str]
    date: str  # YYYY-MM-DD, as of a hit
    origin: str  # "human" or "agent"


class SourcesResult(TypedDict):
    """Some indexed files in the order of their paths."""

    workspace: str
    sources: list[SourceEntry]
    next: str | None  # `after` of the next page; null where this is the last one


class SimilarNote(TypedDict):
    """A note or entry that may say the same."""

    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive
    end_line: int
    title: str
    score: float
    by: list[Literal["meaning", "words"]]  # why it is named
    words: list[str]  # that it shares with the entry, the first of them
    date: str  # as in a search, with the next two
    date_of: Literal["name", "updated", "created", "changed"]
    source: HitSource
    superseded_by: list[str]


class ExtractMemoryResult(TypedDict):
    """The entry that was written."""

    workspace: str
    path: str
    id: str
    created: str  # ISO 8601 with offset
    updated: str | None  # the same, of its last revision
    hash: str  # of the file, for a revision that must not overwrite another one
    indexed: bool  # it is searchable by words, and by meaning where there is a model
    similar: list[SimilarNote]


class ForgetResult(TypedDict):
    """The entry that is gone, and where its words stand all the same."""

    took_ms: float  # the dispatcher measures it
    workspace: str
    path: str
    title: str
    forgotten: bool
    indexed: bool  # the index holds no trace of it; false: a full disk keeps some, which answer no query
    elsewhere: list[Location]  # other notes, archives and daily files that have lines of it; they are left
    in_git: bool  # a git repository lists the file, and its history may have what it said


class JournalRecord(TypedDict):
    """What was done with one entry."""

    time: str  # ISO 8601 with offset
    action: Literal["write", "revise", "supersede", "forget", "unindex"]
    id: str  # of the entry; "" of a file that is none
    hash: str  # of the file: after the action, or before it was gone; "" where nobody knew
    origin: str  # "human" or "agent", as who did it said
    client: str
    conversation: str
    path: str | None  # null: there is no such entry any more
    title: str | None


class JournalResult(TypedDict):
    """What was done with entries, the newest first."""

    took_ms: float  # the dispatcher measures it
    workspace: str
    records: list[JournalRecord]
    records_total: int  # how many there are; the newest are listed


class LoopLag(TypedDict):
    """By how much the event loop came late, in milliseconds."""

    p50: float
    p99: float
    max: float


class RecentRequest(TypedDict):
    """How one request went."""

    at: float  # unix seconds
    method: str
    ms: float
    answer_bytes: int
    failed: bool


class WatchedBatch(TypedDict):
    """What the watcher said of one workspace."""

    at: float  # unix seconds
    workspace: str
    paths: NotRequired[list[str]]  # some; where one workspace is asked about
    count: int  # of paths
    rescan: bool
    overflow: bool
    trouble: str


class DebugResult(TypedDict):
    """What somebody who looks for a mistake wants to know."""

    version: str
    python: str
    system: str
    sqlite: str
    packages: dict[str, str]  # name → version
    telemetry_disabled: bool
    pid: int
    threads: list[str]
    descriptors: int | None  # null where the system does not say
    loop_lag_ms: LoopLag
    requests: list[RecentRequest]  # the newest last
    watched: list[WatchedBatch]


class IndexResult(TypedDict):
    """What the index holds."""

    took_ms: float  # the dispatcher measures it
    workspace: str
    state: Literal["starting", "scanning", "busy", "ready", "missing"]
    sources: int
    chunks: int
    vectors: int
    skipped: int
    gone: int  # sources that left the disk and are kept for a while
    purged: int
    changed: bool
    paused_until: float | None  # unix seconds: vectors are missing until then; null where none wait for it


class SyncResult(TypedDict):
    """Whether what was saved before the call is searchable."""

    took_ms: float  # the dispatcher measures it
    workspace: str
    synced: bool
    generation: int
    index: IndexState


class CheckFinding(TypedDict):
    """One thing that is not as it should be."""

    kind: str
    text: str
    repaired: bool


class CheckResult(TypedDict):
    """What a check found."""

    took_ms: float  # the dispatcher measures it
    workspace: str
    ok: bool
    findings: list[CheckFinding]
    checked: dict[str, int]  # what was compared → how many of them


class PauseResult(TypedDict):
    """Embedding is held."""

    paused_until: float  # unix seconds


class ResumeResult(TypedDict):
    """Embedding goes on."""

    resumed: bool  # false: it was not held


class SubscribeResult(TypedDict):
    """What is followed from now on."""

    subscribed: bool
    workspaces: list[str]


class WorkspaceAddResult(TypedDict):
    """A workspace, looked through."""

    root: str
    config: str  # path of its configuration
    created: bool  # that file is new
    sources: int
    skipped: int
    within: list[str]  # roots of the workspaces around it


class WorkspaceSummary(TypedDict):
    """One registered workspace."""

    root: str
    state: Literal["starting", "scanning", "busy", "ready", "missing", "error"]  # error: it cannot be opened
    sources: NotRequired[int]  # of one that is open
    chunks: NotRequired[int]
    errors: NotRequired[list[str]]  # newest last; of one that is not open: why


class WorkspaceListResult(TypedDict):
    """The registered workspaces."""

    workspaces: list[WorkspaceSummary]


class WorkspaceRemoveResult(TypedDict):
    """A workspace that is none any more."""

    root: str
    removed: bool


class WorkspaceConfig(TypedDict):
    """``memory/config.toml``: everything optional, defaults as ``memctl init`` writes them."""

    sources: list[str]
    ignore: list[str]
    agents_ignore: list[str]
    # 20: below that a chunk has no context. 1,000: far above what any shipped model reads at once.
    chunk_words: int
    chunk_overlap: int
    provider: Literal["onnx", "ollama", "openai", "none"]
    model: str
    address: str
    sidecars: bool
    fusion: Literal["weighted", "rrf"]
    weights: Weights
    half_life_days: float
    # Half: an old diary note that alone has all the words comes before new ones that have half of them.
    decay_floor: float
    min_score: float
    max_results: int
    core: list[str]  # at the head of each recall


class WorkspaceConfigureResult(TypedDict):
    """The settings that hold now."""

    root: str
    config: WorkspaceConfig


class ShutdownResult(TypedDict):
    """The daemon ends."""

    stopping: bool  # false: it is not idle, and goes on

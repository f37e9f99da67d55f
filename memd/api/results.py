"""The answer of every method, as structs.

docs/protocol.md and the client's types (memctl/types.py) are made of these classes and of their comments.
Keys are added, and none is removed or changes its meaning. A key that may be missing is UNSET here. Needs
msgspec alone, as `params` and `methods` do: the client is made of them where memd is built.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from memd.config import WorkspaceConfig
from memd.records import Action, Confidence, DayOf, LinkKind, Mode, Renewal, State
from memd.search.explanation import AnswerExplanation, Explained, Filter


class Result(Struct, frozen=True, kw_only=True):
    """What every answer is, and every part of one."""


class TimedResult(Result, frozen=True, kw_only=True):
    """An answer that says how long it took."""

    took_ms: float = 0.0  # the dispatcher measures it


# Parts of several answers


class LeftSeconds(Result, frozen=True, kw_only=True):
    """How long open work will take about."""

    words: float | None  # null: nothing is known yet
    vectors: float | None


class IndexState(Result, frozen=True, kw_only=True):
    """How fresh an answer is."""

    state: State
    first: bool  # not everything has been searchable once
    renewed: Renewal  # why, where it is not the first index: memd was updated, or the old one was damaged
    first_words: bool  # not everything has been searchable by its words once
    pending: int  # files and vectors that are not searchable yet
    pending_files: int
    pending_vectors: int
    generation: int  # counts commits
    lag_ms: int  # age of the oldest change that is not searchable yet
    embedded: float | None  # share of the chunks that the model reads that have a vector; null without one
    left_s: LeftSeconds


class SearchedResult(TimedResult, frozen=True, kw_only=True):
    """How an answer was made from an index."""

    workspace: str  # its root
    mode: Mode  # the arms that answered
    degraded: list[str]  # codes of what was missing
    index: IndexState
    synced: bool | UnsetType = UNSET  # with `sync`: whether what was saved before is searchable
    timings_ms: dict[str, float]  # step → how long it took; "keyword" may run beside "embed"


class Location(Result, frozen=True, kw_only=True):
    """Some lines of a source."""

    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive
    end_line: int


class ChunkLines(Result, frozen=True, kw_only=True):
    """A chunk of a source that is known."""

    id: int
    start_line: int
    end_line: int
    heading: str


class VectorEvidence(Result, frozen=True, kw_only=True):
    """What the vector arm says of a hit."""

    rank: int | None
    score: float | None  # null: it could not see the chunk


class KeywordEvidence(Result, frozen=True, kw_only=True):
    """What the keyword arm says of a hit."""

    rank: int | None
    score: float | None
    tier: str | None  # which of its tiers found it


class ArmEvidence(Result, frozen=True, kw_only=True):
    """What both arms say of a hit."""

    vector: VectorEvidence
    keyword: KeywordEvidence


class UsedWeights(Result, frozen=True, kw_only=True):
    """The weights that were used for a hit."""

    vector: float
    keyword: float


class HitSource(Result, frozen=True, kw_only=True):
    """Who wrote a source."""

    origin: str  # "human" or "agent"
    entry: str | UnsetType = UNSET  # of a daily entry: the id that `forget` takes


class SearchHit(Result, frozen=True, kw_only=True):
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
    date_of: DayOf  # what happened then: the file's name or its front matter says it, or its last change
    tags: list[str]
    source: HitSource
    match_line: int
    match_column: int  # in bytes, from 1
    match_text: str  # that line
    folded: list[Location]  # where nearly the same text stands
    superseded_by: list[str]  # paths of the notes that hold in its place: the newest of its chain; else empty
    explanation: Explained | UnsetType = UNSET  # with `explain`


# search, recall, similar, why, get


class WithoutMinus(Result, frozen=True, kw_only=True):
    """What a query finds if the words that it excludes are looked for."""

    hits: int
    best: Location | None  # where the first of them is


class SearchResult(SearchedResult, frozen=True, kw_only=True):
    """Ranked hits."""

    hits: list[SearchHit]
    confidence: Confidence  # how good the best match is
    corrected: dict[str, str]  # words that nobody knows, as they were typed → what was looked for as well
    forms: dict[str, list[str]]  # words → other forms of them that notes have, which were looked for as well
    without: list[str]  # words and phrases that a minus excluded
    without_minus: WithoutMinus | None  # null but where they are excluded and nothing is left
    model_id: str | None  # of the query's vector
    not_utf8: list[str]  # the first few sources that nothing is found in, for their text is not UTF-8
    explanation: AnswerExplanation | UnsetType = UNSET  # with `explain`


class RecallSource(Location, frozen=True, kw_only=True):
    """Lines that were sent."""

    id: int
    score: float | None  # null: of the core, which goes first whatever is asked
    confidence: Confidence | None  # how good a match these lines are; null: of the core
    date: str  # YYYY-MM-DD
    origin: str  # "human" or "agent"
    superseded_by: list[str]  # as in a search


class RecallOmission(RecallSource, frozen=True, kw_only=True):
    """Lines that were left out."""

    reason: str


class RecallResult(SearchedResult, frozen=True, kw_only=True):
    """What is known, as text for a prompt within a budget."""

    text: str  # framed so that no text of a note can end its frame
    format: Literal["markdown", "xml"]
    tokens: int  # of all of `text`
    budget_tokens: int
    estimator: str  # how tokens are counted
    sources: list[RecallSource]
    omitted: list[RecallOmission]
    confidence: Confidence
    corrected: dict[str, str]
    forms: dict[str, list[str]]  # as in a search
    without: list[str]  # as in a search
    without_minus: WithoutMinus | None  # as in a search
    model_id: str | None


class LinkOut(Result, frozen=True, kw_only=True):
    """A link of a note to another one."""

    kind: LinkKind  # [[in the text]], or the key of the front matter
    target: str  # as it is written, without alias and heading
    path: str | None  # of the note that is meant; null: none is called that, or of a key not one alone
    line: int | None  # 1-based; null: in the front matter


class LinkIn(Result, frozen=True, kw_only=True):
    """A link of another note to one."""

    kind: LinkKind  # as in `LinkOut`
    path: str  # of the note that it stands in
    title: str
    line: int | None  # the same


class NoteLinks(Result, frozen=True, kw_only=True):
    """The links of a note, the first of each direction."""

    outgoing: list[LinkOut]
    outgoing_total: int
    incoming: list[LinkIn]
    incoming_total: int


class NamedChunk(Location, frozen=True, kw_only=True):
    """The chunk that a request named."""

    id: int
    heading: str


class SimilarResult(SearchedResult, frozen=True, kw_only=True):
    """Chunks of other sources that are most like one."""

    to: NamedChunk
    superseded_by: list[str]  # as in a search, of the source of `to`
    links: NoteLinks  # of that source
    hits: list[SearchHit]


class LastHit(Result, frozen=True, kw_only=True):
    """The last hit of an answer."""

    path: str
    score: float


class WhyFacts(Result, frozen=True, kw_only=True):
    """The values that the sentence of `why` quotes; docs/explaining.md says which stage has which."""

    reason: str | UnsetType = UNSET  # of not-a-source and not-indexed
    place: str | UnsetType = UNSET  # of not-a-source: the path, or the folder above it
    rule: str | UnsetType = UNSET  # of not-a-source: the pattern that says so, and where it stands
    close: list[str] | UnsetType = UNSET  # of missing: sources with such a name
    date: str | UnsetType = UNSET  # of a source that is indexed, as all below
    tags: list[str] | UnsetType = UNSET
    rank: int | UnsetType | None = UNSET  # among all hits
    limit: int | UnsetType = UNSET
    floor: float | UnsetType = UNSET  # min_score
    filters: list[Filter] | UnsetType = UNSET  # that keep it out
    vector_arm: str | UnsetType | None = UNSET  # why it had no say; null where it had
    better: list[int] | UnsetType = UNSET  # ranks of its source's hits
    into: Location | UnsetType | None = UNSET  # the chunk that it is folded into, or shown with
    last: LastHit | UnsetType | None = UNSET
    chunk: ChunkLines | UnsetType = UNSET  # that went furthest
    explanation: Explained | UnsetType = UNSET  # of its scores
    has: list[str] | UnsetType = UNSET  # terms of the query that stand in it
    lacks: list[str] | UnsetType = UNSET


class WhyResult(SearchedResult, frozen=True, kw_only=True):
    """The stage that dropped a source from an answer."""

    path: str  # relative to the workspace
    line: int | None  # that was asked about
    stage: str  # docs/explaining.md lists them
    text: str
    advice: str
    facts: WhyFacts
    superseded_by: list[str]  # as in a search
    confidence: Confidence | None  # of the answer; null where the source is not in it
    corrected: dict[str, str]  # as in a search


class GetResult(Result, frozen=True, kw_only=True):
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


class HistoryNote(Result, frozen=True, kw_only=True):
    """One step of a history."""

    path: str
    title: str
    date: str  # YYYY-MM-DD
    date_of: DayOf
    created: str | None  # as its front matter says; null where it says nothing
    updated: str | None
    origin: str  # "human" or "agent"
    supersedes: list[str]  # paths of those that it names itself
    superseded_by: list[str]  # paths of those that name it themselves


class HistoryResult(TimedResult, frozen=True, kw_only=True):
    """How it came to what a note says, and what became of that."""

    workspace: str
    path: str  # of the note that was asked about
    notes: list[HistoryNote]  # the oldest first; of very many the last ones
    notes_total: int
    unresolved: list[str]  # what the note says it supersedes and no note, or no note alone, is called


class SourceEntry(Result, frozen=True, kw_only=True):
    """One indexed file."""

    path: str  # relative to the workspace
    title: str
    tags: list[str]
    date: str  # YYYY-MM-DD, as of a hit
    origin: str  # "human" or "agent"


class SourcesResult(Result, frozen=True, kw_only=True):
    """Some indexed files in the order of their paths."""

    workspace: str
    sources: list[SourceEntry]
    next: str | None  # `after` of the next page; null where this is the last one


# extract_memory, forget


class SimilarNote(Location, frozen=True, kw_only=True):
    """A note or entry that may say the same."""

    title: str
    score: float
    by: list[Literal["meaning", "words"]]  # why it is named
    words: list[str]  # that it shares with the entry, the first of them
    date: str  # as in a search, with the next two
    date_of: DayOf
    source: HitSource
    superseded_by: list[str]


class ExtractMemoryResult(Result, frozen=True, kw_only=True):
    """The entry that was written."""

    workspace: str
    path: str
    id: str
    created: str  # ISO 8601 with offset
    updated: str | None  # the same, of its last revision
    hash: str  # of the file, for a revision that must not overwrite another one
    indexed: bool  # it is searchable by words, and by meaning where there is a model
    similar: list[SimilarNote]


class ForgetResult(TimedResult, frozen=True, kw_only=True):
    """The entry that is gone, and where its words stand all the same."""

    workspace: str
    path: str
    title: str
    forgotten: bool
    indexed: bool  # the index holds no trace of it; false: a full disk keeps some, which answer no query
    elsewhere: list[Location]  # other notes, archives and daily files that have lines of it; they are left
    in_git: bool  # a git repository lists the file, and its history may have what it said


class JournalRecord(Result, frozen=True, kw_only=True):
    """What was done with one entry."""

    time: str  # ISO 8601 with offset
    action: Action
    id: str  # of the entry; "" of a file that is none
    hash: str  # of the file: after the action, or before it was gone; "" where nobody knew
    origin: str  # "human" or "agent", as who did it said
    client: str
    conversation: str
    path: str | None  # null: there is no such entry any more
    title: str | None


class JournalResult(TimedResult, frozen=True, kw_only=True):
    """What was done with entries, the newest first."""

    workspace: str
    records: list[JournalRecord]
    records_total: int  # how many there are; the newest are listed


# index, sync, check


class IndexResult(TimedResult, frozen=True, kw_only=True):
    """What the index holds."""

    workspace: str
    state: State
    sources: int
    chunks: int
    vectors: int
    skipped: int
    gone: int  # sources that left the disk and are kept for a while
    purged: int
    changed: bool
    paused_until: float | None  # unix seconds: vectors are missing until then; null where none wait for it


class SyncResult(TimedResult, frozen=True, kw_only=True):
    """Whether what was saved before the call is searchable."""

    workspace: str
    synced: bool
    generation: int
    index: IndexState


class CheckFinding(Result, frozen=True, kw_only=True):
    """One thing that is not as it should be."""

    kind: str
    text: str
    repaired: bool


class CheckResult(TimedResult, frozen=True, kw_only=True):
    """What a check found."""

    workspace: str
    ok: bool
    findings: list[CheckFinding]
    checked: dict[str, int]  # what was compared → how many of them


# The daemon


class ServerLimits(Result, frozen=True, kw_only=True):
    """What a client may send and open."""

    request_bytes: int
    answer_bytes: int
    in_flight_per_connection: int
    connections: int


class HelloResult(Result, frozen=True, kw_only=True):
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


class PingResult(Result, frozen=True, kw_only=True):
    """Who is there."""

    pong: bool
    instance_id: str
    pid: int


class ModelStatus(Result, frozen=True, kw_only=True):
    """One model in use."""

    provider: str
    state: str
    id: str | None
    error: str | None


class ServerStatus(Result, frozen=True, kw_only=True):
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


class SkippedFile(Result, frozen=True, kw_only=True):
    """A file that the patterns select and that is not indexed."""

    path: str
    reason: str


class SourceWarning(Result, frozen=True, kw_only=True):
    """A file that is not indexed as it could be."""

    path: str
    warning: str


class ProbeOutcome(Result, frozen=True, kw_only=True):
    """How the last `health` or `check` went."""

    ok: bool
    detail: str
    at: float  # unix seconds


class ModelChange(Result, frozen=True, kw_only=True):
    """Another model's vectors, built beside the old ones."""

    model_id: str
    done: int
    total: int


class WorkProgress(Result, frozen=True, kw_only=True):
    """How far some work is."""

    stage: str
    done: int
    total: int


class SidecarCounts(Result, frozen=True, kw_only=True):
    """What was done with .vec files."""

    read: int
    written: int
    ignored: dict[str, int]  # reason → how many


class WorkspaceSummary(Result, frozen=True, kw_only=True):
    """One registered workspace."""

    root: str
    state: Literal[State, "error"]  # error: it cannot be opened
    sources: int | UnsetType = UNSET  # of one that is open
    chunks: int | UnsetType = UNSET
    errors: list[str] | UnsetType = UNSET  # newest last; of one that is not open: why


class WorkspaceStatus(WorkspaceSummary, frozen=True, kw_only=True):
    """All that is known of one workspace; of one that is not open `root`, `state` and `errors` alone."""

    first: bool | UnsetType = UNSET  # this and the next two as in `IndexState`
    renewed: Renewal | UnsetType = UNSET
    first_words: bool | UnsetType = UNSET
    pending: int | UnsetType = UNSET
    pending_files: int | UnsetType = UNSET
    pending_vectors: int | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    lag_ms: int | UnsetType = UNSET
    embedded: float | UnsetType | None = UNSET
    left_s: LeftSeconds | UnsetType = UNSET
    vectors: int | UnsetType = UNSET  # chunks that the vector arm can see
    unreadable: int | UnsetType = UNSET  # chunks that it never will: in a script that the model does not read
    beyond: int | UnsetType = UNSET  # chunks beyond the first 1,500 of a note: they get no vector, either
    skipped: list[SkippedFile] | UnsetType = UNSET  # the first of them
    skipped_total: int | UnsetType = UNSET
    warnings: list[SourceWarning] | UnsetType = UNSET  # the first of them
    warnings_total: int | UnsetType = UNSET
    copies: list[str] | UnsetType = UNSET  # conflict copies of sync programs, the first of them
    copies_total: int | UnsetType = UNSET
    templates: list[str] | UnsetType = UNSET  # folders of templates of Obsidian vaults, which are left out
    last_scan: float | UnsetType | None = UNSET  # unix seconds
    last_index: float | UnsetType | None = UNSET  # unix seconds: when everything was searchable
    last_health: ProbeOutcome | UnsetType | None = UNSET
    model_id: str | UnsetType = UNSET  # of the vectors in the index
    provider: str | UnsetType = UNSET
    last_check: ProbeOutcome | UnsetType | None = UNSET
    watching: str | UnsetType = UNSET  # by which means changes are heard of
    gone: int | UnsetType = UNSET  # sources that left the disk and are kept for a while
    held: str | UnsetType = UNSET  # why they are kept for longer
    building: ModelChange | UnsetType | None = UNSET
    rebuilding: WorkProgress | UnsetType | None = UNSET
    sidecars: SidecarCounts | UnsetType | None = UNSET  # null where they are off
    damaged_rows: int | UnsetType = UNSET
    size_bytes: int | UnsetType = UNSET  # of the index
    set_aside: list[str] | UnsetType = UNSET  # folders of older indexes, with what notes said then
    degraded: list[str] | UnsetType = UNSET  # codes of what is not as it should be


class StatusResult(Result, frozen=True, kw_only=True):
    """The server and its workspaces."""

    server: ServerStatus
    workspaces: list[WorkspaceStatus]


class HealthCheck(Result, frozen=True, kw_only=True):
    """How the search in one workspace went."""

    name: str  # the workspace's root
    ok: bool
    detail: str


class HealthResult(Result, frozen=True, kw_only=True):
    """How a real search in each workspace went."""

    ok: bool
    checks: list[HealthCheck]


class LoopLag(Result, frozen=True, kw_only=True):
    """By how much the event loop came late, in milliseconds."""

    p50: float
    p99: float
    max: float


class RecentRequest(Result, frozen=True, kw_only=True):
    """How one request went."""

    at: float  # unix seconds
    method: str
    ms: float
    answer_bytes: int
    failed: bool


class WatchedBatch(Result, frozen=True, kw_only=True):
    """What the watcher said of one workspace."""

    at: float  # unix seconds
    workspace: str
    paths: list[str] | UnsetType = UNSET  # some; where one workspace is asked about
    count: int  # of paths
    rescan: bool
    overflow: bool
    trouble: str


class DebugResult(Result, frozen=True, kw_only=True):
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


class SubscribeResult(Result, frozen=True, kw_only=True):
    """What is followed from now on."""

    subscribed: bool
    workspaces: list[str]


class PauseResult(Result, frozen=True, kw_only=True):
    """Embedding is held."""

    paused_until: float  # unix seconds


class ResumeResult(Result, frozen=True, kw_only=True):
    """Embedding goes on."""

    resumed: bool  # false: it was not held


class ShutdownResult(Result, frozen=True, kw_only=True):
    """The daemon ends."""

    stopping: bool  # false: it is not idle, and goes on


# workspace.*


class WorkspaceAddResult(Result, frozen=True, kw_only=True):
    """A workspace, looked through."""

    root: str
    config: str  # path of its configuration
    created: bool  # that file is new
    sources: int
    skipped: int
    within: list[str]  # roots of the workspaces around it


class WorkspaceListResult(Result, frozen=True, kw_only=True):
    """The registered workspaces."""

    workspaces: list[WorkspaceSummary]


class WorkspaceRemoveResult(Result, frozen=True, kw_only=True):
    """A workspace that is none any more."""

    root: str
    removed: bool


class WorkspaceConfigureResult(Result, frozen=True, kw_only=True):
    """The settings that hold now."""

    root: str
    config: WorkspaceConfig

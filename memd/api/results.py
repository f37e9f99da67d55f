"""The answer of every method, as structs.

docs/protocol.md and the client's types (memctl/types.py) are generated from these classes and their comments.
Keys may be added; no key is removed or changes its meaning. A key that may be missing is UNSET here. Imports
only msgspec, as `params` and `methods` do, because the build of memd generates the client from them.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from memd import records
from memd.config import Weights, WorkspaceConfig
from memd.languages import Language
from memd.search.explanation import AnswerExplanation, Explained, Filter


class Result(Struct, frozen=True, kw_only=True):
    """The base of every answer and of its parts."""


class WorkspaceResult(Result, frozen=True, kw_only=True):
    """An answer about one workspace, which the dispatcher names in it, unless the handler does."""

    workspace: str = ""  # its root


class TimedResult(WorkspaceResult, frozen=True, kw_only=True):
    """The same with its duration, which the dispatcher measures."""

    took_ms: float = 0.0


# Parts of several answers


class SearchedResult(TimedResult, frozen=True, kw_only=True):
    """The common keys of answers from an index."""

    mode: records.Mode  # the arms that answered
    degraded: list[str]  # codes of what was unavailable
    index: records.IndexState
    synced: bool | UnsetType = UNSET  # with `sync`: whether earlier saves are searchable
    timings_ms: dict[str, float]  # step → duration


class ChunkLines(Result, frozen=True, kw_only=True):
    """A chunk of a known source."""

    id: int
    start_line: int
    end_line: int
    heading: str


class VectorEvidence(Result, frozen=True, kw_only=True):
    """The vector arm's rank and score of a hit."""

    rank: int | None
    score: float | None  # null: it could not score the chunk


class KeywordEvidence(VectorEvidence, frozen=True, kw_only=True):
    """The keyword arm's rank and score of a hit."""

    tier: str | None  # which of its tiers found it


class ArmEvidence(Result, frozen=True, kw_only=True):
    """The ranks and scores of both arms."""

    vector: VectorEvidence
    keyword: KeywordEvidence


class HitSource(Result, frozen=True, kw_only=True):
    """The author of a source."""

    origin: str  # "human" or "agent"
    entry: str | UnsetType = UNSET  # of a daily entry: the id that `forget` takes
    derived_from: Literal["external"] | UnsetType = UNSET  # not its author's word: from the web, for one


class TeamPlace(Result, frozen=True, kw_only=True):
    """Whose note a hit of the team's memory is."""

    workspace: str  # its name
    machine: str
    owner: str
    root: str | UnsetType = UNSET  # of the workspace, if it is one of this machine


class SearchHit(Result, frozen=True, kw_only=True):
    """One hit of an answer: its best chunk, with the adjacent chunks if these match, too."""

    id: int  # of its best chunk; 0 in an answer of the team's memory
    path: str  # relative to the workspace
    start_line: int  # 1-based, inclusive; hits do not overlap
    end_line: int
    heading: str  # the headings above it, outermost first, joined by " > "
    title: str
    snippet: str
    score: float  # in [0, 1], with the same meaning in every mode
    arms: ArmEvidence
    weights: Weights  # that were used for it
    decay: float  # factor of the score by age, in (0, 1]
    date: str  # YYYY-MM-DD
    date_of: records.DayOf  # the origin of the date: the file's name, its front matter or its last change
    tags: list[str]
    source: HitSource
    match_line: int
    match_column: int  # in bytes, from 1
    match_text: str  # that line
    folded: list[records.Location]  # locations of near-duplicates
    superseded_by: list[str]  # paths of the newest notes that supersede it; empty if none do
    expired: str | UnsetType = UNSET  # the last day on which it held (`valid_until`), if that is past
    later: records.LaterStatement | UnsetType = UNSET  # where a later note says that something has changed
    # Of an archived conversation: entries written from it, or the newest notes that supersede those.
    entries: list[str] | UnsetType = UNSET
    explanation: Explained | UnsetType = UNSET  # with `explain`
    team: TeamPlace | UnsetType = UNSET  # with `scope: "team"`


# search, recall, similar, why, get


class WithoutMinus(Result, frozen=True, kw_only=True):
    """The result of a query if its excluded words are searched instead."""

    hits: int
    best: records.Location | None  # location of the best hit


class QueryResult(SearchedResult, frozen=True, kw_only=True):
    """The common keys of answers to a query."""

    confidence: records.Confidence  # of the best match
    lead: float | None  # of the first hit over the best of another note, before decay; null without hits
    corrected: dict[str, str]  # unknown words, as typed → the terms searched in addition
    forms: dict[str, list[str]]  # words → their other forms in the notes, which were searched as well
    without: list[str]  # words and phrases that a minus excluded
    as_words: list[str] = []  # what looks like an operator and is searched as words: phrases that no note has
    unmatched: list[str] | UnsetType = UNSET  # without hits: filters that no note meets, alone or together
    without_minus: WithoutMinus | None  # null unless words were excluded and no good match is left
    model_id: str | None  # of the query's vector


class SearchResult(QueryResult, frozen=True, kw_only=True):
    """Ranked hits."""

    hits: list[SearchHit]
    folders: dict[str, str] | UnsetType = UNSET  # for agents: what the hits' folders say they are, if they do
    not_utf8: list[str]  # the first few sources that are not UTF-8, of which some words cannot be found
    explanation: AnswerExplanation | UnsetType = UNSET  # with `explain`


class TimelineDay(Result, frozen=True, kw_only=True):
    """The hits of one day."""

    date: str  # YYYY-MM-DD
    hits: int
    best: SearchHit


class TimelineResult(QueryResult, frozen=True, kw_only=True):
    """The hits of a query by day, the earliest first."""

    days: list[TimelineDay]


class RecallSource(records.Location, frozen=True, kw_only=True):
    """Lines included in the text."""

    id: int
    score: float | None  # null: of the core, which comes first for any query, or with `begins`
    confidence: records.Confidence | None  # of the match; null: of the core
    date: str  # YYYY-MM-DD
    origin: str  # "human" or "agent"
    superseded_by: list[str]  # as in `search`
    expired: str | UnsetType = UNSET  # this and the next three as in `search`
    later: records.LaterStatement | UnsetType = UNSET
    entries: list[str] | UnsetType = UNSET
    derived_from: Literal["external"] | UnsetType = UNSET
    team: TeamPlace | UnsetType = UNSET  # as in `search`


class RecallOmission(RecallSource, frozen=True, kw_only=True):
    """Lines omitted from the text."""

    reason: str


class NamedNote(Result, frozen=True, kw_only=True):
    """A note by its title."""

    path: str
    title: str


class RecallResult(QueryResult, frozen=True, kw_only=True):
    """The core and the hits as text for a prompt, within a budget."""

    text: str  # formatted so that a note's text cannot break out of its block
    format: Literal["markdown", "xml"]
    tokens: int  # of the whole `text`
    budget_tokens: int
    estimator: str  # the formula of the token count
    sources: list[RecallSource]
    named: list[NamedNote] = []  # notes of which `text` has only title and path
    folders: dict[str, str] | UnsetType = UNSET  # as in `search`; they are in `text`, too
    keys: list[str] | UnsetType = UNSET  # with `known`: keys of the passages in `text`, for the next `known`
    omitted: list[RecallOmission]


class LinkOut(Result, frozen=True, kw_only=True):
    """A link of a note to another one."""

    # text: [[in the text]]; markdown and image: Markdown's; or the key of the front matter.
    kind: records.LinkKind
    target: str  # as written, without alias and heading
    part: str  # the heading or block that it names; "": none
    path: str | None  # of the target; null: no note has that name, or for a key several do
    why: records.Why  # why it leads to no note, or, with ambiguous, that several have the name; "": to one
    line: int | None  # 1-based; null: in the front matter
    column: int  # 1-based, in characters; 0: in the front matter, and to agents in a note with a secret


class LinkIn(Result, frozen=True, kw_only=True):
    """A link from another note."""

    kind: records.LinkKind  # as in `LinkOut`
    path: str  # of the note that contains the link
    title: str
    part: str  # this and the next two as in `LinkOut`
    line: int | None
    column: int


class NoteLinks(Result, frozen=True, kw_only=True):
    """The first links of a note in each direction; `links` has them all."""

    outgoing: list[LinkOut]  # without images and what is no note
    outgoing_total: int
    incoming: list[LinkIn]
    incoming_total: int


class LinkPlace(Result, frozen=True, kw_only=True):
    """A place where a note links, or could."""

    path: str  # of the note that contains it
    title: str
    kind: records.LinkKind | None  # as in `LinkOut`; null: a mention, or a note alone
    target: str  # as in `LinkOut`; of a mention the words
    part: str
    line: int | None
    column: int  # 0 also where a line is so long that it is cut
    to: str | None  # path of the note that it leads to
    why: records.Why


class LinksResult(TimedResult, frozen=True, kw_only=True):
    """A page of links, by path and line."""

    path: str | None
    links: list[LinkPlace]
    total: int
    next: int | None  # `offset` of the next page; null: this is the last


class HeadingPlace(Result, frozen=True, kw_only=True):
    """A heading of a note."""

    line: int  # 1-based
    level: int
    title: str


class NoteNames(Result, frozen=True, kw_only=True):
    """What links can name of a note."""

    path: str
    title: str
    aliases: list[str]  # with the title in its front matter
    headings: list[HeadingPlace]
    tags: list[str]
    date: str  # YYYY-MM-DD


class NamesResult(TimedResult, frozen=True, kw_only=True):
    """A page of the notes' names, by path."""

    generation: int  # for `since`; of several pages that of the first
    all: bool  # all notes, and not only those that changed: `since` is too long ago, or was not given
    notes: list[NoteNames]
    removed: list[str]  # paths that went since; on the first page
    next: str | None  # `after` of the next page; null: this is the last


class ResolveResult(TimedResult, frozen=True, kw_only=True):
    """What a link means."""

    path: str | None
    title: str
    line: int = 1  # of the heading or block, or 1
    end_line: int | None = None  # the last of its section; null: of the note
    why: records.Why = ""  # as in `LinkOut`; part: the note has no such heading, block or line


class OutlineHeading(Result, frozen=True, kw_only=True):
    """A heading of the text, by offsets in characters."""

    level: int
    title: str
    start: int
    stop: int


class OutlineLink(Result, frozen=True, kw_only=True):
    """A link of the text, by offsets in characters, with what it means."""

    kind: records.LinkKind
    target: str
    part: str
    start: int
    stop: int
    written_start: int  # target and part as written; -1: in the definition of a reference
    written_stop: int
    path: str | None  # this and the next three as in `ResolveResult`
    title: str
    line: int
    why: records.Why


class OutlineResult(TimedResult, frozen=True, kw_only=True):
    """Links and headings of a text."""

    body: int  # offset behind the front matter
    title: str  # in the front matter
    aliases: list[str]
    headings: list[OutlineHeading]
    links: list[OutlineLink]
    superseded_by: list[str]  # as in `search`, of the note as it is indexed


class NamedChunk(ChunkLines, frozen=True, kw_only=True):
    """The chunk that a request named."""

    path: str  # relative to the workspace


class SimilarResult(SearchedResult, frozen=True, kw_only=True):
    """The most similar chunks of other sources."""

    to: NamedChunk | UnsetType = UNSET  # missing for a text
    superseded_by: list[str]  # as in `search`, of the source of `to`
    links: NoteLinks  # of that source; none for a text
    hits: list[SearchHit]


class LastHit(Result, frozen=True, kw_only=True):
    """The last hit of an answer."""

    path: str
    score: float


class WhyFacts(Result, frozen=True, kw_only=True):
    """The values in the sentence of `why`; docs/explaining.md lists them by stage."""

    reason: str | UnsetType = UNSET  # of not-a-source and not-indexed
    place: str | UnsetType = UNSET  # of not-a-source: the path, or the folder above it
    rule: str | UnsetType = UNSET  # of not-a-source: the pattern, and the place of its definition
    close: list[str] | UnsetType = UNSET  # of missing: sources with a similar name
    date: str | UnsetType = UNSET  # of an indexed source, as all below
    tags: list[str] | UnsetType = UNSET
    rank: int | UnsetType | None = UNSET  # among all hits
    limit: int | UnsetType = UNSET
    floor: float | UnsetType = UNSET  # min_score
    filters: list[Filter] | UnsetType = UNSET  # that exclude it
    vector_arm: str | UnsetType | None = UNSET  # why it did not run or was not used; null if it was used
    better: list[int] | UnsetType = UNSET  # ranks of the hits of its source
    into: records.Location | UnsetType | None = UNSET  # the chunk that it is folded into, or shown with
    last: LastHit | UnsetType | None = UNSET
    chunk: ChunkLines | UnsetType = UNSET  # the chunk that got furthest
    explanation: Explained | UnsetType = UNSET  # of its scores
    has: list[str] | UnsetType = UNSET  # terms of the query that occur in it
    lacks: list[str] | UnsetType = UNSET


class WhyResult(SearchedResult, frozen=True, kw_only=True):
    """The stage that dropped a source from an answer."""

    path: str  # relative to its workspace
    line: int | None  # of the request
    stage: str  # docs/explaining.md lists them
    text: str
    advice: str
    facts: WhyFacts
    superseded_by: list[str]  # as in `search`
    expired: str | UnsetType = UNSET  # as in `search`
    confidence: records.Confidence | None  # of the answer; null if the source is not in it
    corrected: dict[str, str]  # as in `search`


class GetResult(WorkspaceResult, frozen=True, kw_only=True):
    """A source or a range of its lines."""

    path: str
    title: str
    tags: list[str]
    start_line: int
    end_line: int
    lines: int  # of the whole source
    hash: str  # of the whole file
    text: str
    superseded_by: list[str]  # as in `search`
    expired: str | UnsetType = UNSET  # this and the next two as in `search`
    entries: list[str] | UnsetType = UNSET
    derived_from: Literal["external"] | UnsetType = UNSET
    links: NoteLinks | UnsetType = UNSET  # of the whole source; missing if the request says so


class HistoryNote(Result, frozen=True, kw_only=True):
    """One step of a history."""

    path: str
    title: str
    date: str  # YYYY-MM-DD
    date_of: records.DayOf
    created: str | None  # from its front matter; null if missing there
    updated: str | None
    origin: str  # "human" or "agent"
    supersedes: list[str]  # paths of the notes that it names directly
    superseded_by: list[str]  # paths of the notes that name it directly


class HistoryResult(TimedResult, frozen=True, kw_only=True):
    """The notes that a note supersedes, and the notes that supersede it."""

    path: str  # of the requested note
    notes: list[HistoryNote]  # oldest first; only the newest of very many
    notes_total: int
    unresolved: list[str]  # names in the note's `supersedes` that match no note, or several


class SourceEntry(Result, frozen=True, kw_only=True):
    """One indexed file."""

    path: str  # relative to the workspace
    title: str
    tags: list[str]
    date: str  # YYYY-MM-DD, as of a hit
    origin: str  # "human" or "agent"
    chunks: int
    vectors: int  # chunks that are found by meaning, too
    modified: float | None  # unix seconds: the file's time of change; null if it is gone
    recalled: str | None  # YYYY-MM-DD: when an entry was last given to an agent; null: never, or no entry


class SkippedSource(Result, frozen=True, kw_only=True):
    """A file that is not indexed."""

    path: str
    reason: str  # a code of `not-a-source`, in docs/explaining.md
    text: str  # the reason, behind "the file"


class SourcesResult(WorkspaceResult, frozen=True, kw_only=True):
    """Some indexed files, or some that are skipped, in the order of their paths."""

    sources: list[SourceEntry]
    skipped: list[SkippedSource]
    next: str | None  # `after` of the next page; null on the last page


class FieldCount(Result, frozen=True, kw_only=True):
    """A key of front matter, or a value of one."""

    name: str
    notes: int  # that have it
    values: int | UnsetType = UNSET  # of a key: its different values


class FieldsResult(TimedResult, frozen=True, kw_only=True):
    """The keys in front matter, or the values of one key, the most frequent first."""

    key: str | None  # of the request; null: the fields are keys
    fields: list[FieldCount]
    fields_total: int  # number of all; the most frequent are listed


# extract_memory, forget


class SimilarNote(records.Location, frozen=True, kw_only=True):
    """A note or entry that may have the same content."""

    title: str
    score: float
    by: list[Literal["meaning", "words"]]  # the reasons
    words: list[str]  # the first words that it shares with the entry
    date: str  # as in `search`, with the next two
    date_of: records.DayOf
    source: HitSource
    superseded_by: list[str]


class ExtractMemoryResult(WorkspaceResult, frozen=True, kw_only=True):
    """The entry that was written."""

    path: str
    id: str
    created: str  # ISO 8601 with offset
    updated: str | None  # the same, of its last revision
    hash: str  # of the file, for a revision that must not overwrite another
    indexed: bool  # it is searchable by words, and by meaning if there is a model
    similar: list[SimilarNote]


class ReviewEntry(Result, frozen=True, kw_only=True):
    """An entry that an agent wrote."""

    path: str
    title: str
    id: str
    written: str  # ISO 8601: time of the last revision
    recalled: str | None  # the last day on which an agent got it; null: never, as far as is recorded
    superseded_by: list[str]  # as in `search`, with the next two
    expired: str | UnsetType = UNSET
    derived_from: Literal["external"] | UnsetType = UNSET
    similar: SimilarNote | UnsetType = UNSET  # the most similar newer note, unless the entry is superseded


class ReviewResult(TimedResult, frozen=True, kw_only=True):
    """The entries of agents, the oldest first."""

    entries: list[ReviewEntry]
    entries_total: int  # number of all; the oldest are listed


class ForgetResult(TimedResult, frozen=True, kw_only=True):
    """The forgotten entry, and the places that still have its lines."""

    path: str
    title: str
    forgotten: bool
    indexed: bool  # the index has no trace of it; false: a full disk, or a long reader, still keeps some
    elsewhere: list[records.Location]  # notes, archives and daily files that have lines of it, and stay
    in_git: bool  # a git repository tracks the file, and its history may contain the entry


class JournalRecord(records.JournalLine, frozen=True, kw_only=True):
    """One action on an entry, with the entry as it is now."""

    path: str | None  # null: the entry no longer exists
    title: str | None


class JournalResult(TimedResult, frozen=True, kw_only=True):
    """The actions on entries, newest first."""

    records: list[JournalRecord]
    records_total: int  # number of all records; the newest are listed


# index, sync, check


class IndexResult(TimedResult, frozen=True, kw_only=True):
    """The contents of the index."""

    state: records.State
    sources: int
    chunks: int
    vectors: int
    skipped: int
    gone: int  # deleted sources that the index still keeps
    purged: int
    changed: bool
    paused_until: float | None  # unix seconds: vectors are missing until then; null if none are pending


class SyncResult(TimedResult, frozen=True, kw_only=True):
    """Whether changes saved before the call are searchable."""

    synced: bool
    generation: int
    index: records.IndexState


class CheckFinding(Result, frozen=True, kw_only=True):
    """One inconsistency."""

    kind: str
    text: str
    repaired: bool


class CheckResult(TimedResult, frozen=True, kw_only=True):
    """The findings of a check."""

    ok: bool
    findings: list[CheckFinding]
    checked: dict[str, int]  # kind of compared object → count


# The daemon


class ServerLimits(Result, frozen=True, kw_only=True):
    """The limits on requests, answers and connections."""

    request_bytes: int
    answer_bytes: int
    in_flight_per_connection: int
    connections: int


class HelloResult(Result, frozen=True, kw_only=True):
    """Versions, features and limits."""

    protocol: int
    api_level: int  # rises with every added key or method
    api_compatible: int  # the oldest level whose clients still understand the answers
    features: list[str]
    server_version: str
    instance_id: str  # different after each start
    pid: int
    state_dir: str  # of its indexes and its log: a client with another HOME has another
    limits: ServerLimits
    model_id: str | None
    index_generation: int | None  # of the workspace of the request; null without one
    degraded: list[str]  # codes of what is unavailable


class PingResult(Result, frozen=True, kw_only=True):
    """The identity of the daemon."""

    pong: bool
    instance_id: str
    pid: int


class ModelStatus(Result, frozen=True, kw_only=True):
    """One model in use."""

    provider: str
    state: str
    id: str | None
    error: str | None


class TeamWorkspace(Result, frozen=True, kw_only=True):
    """A workspace that is published to the team, or shall be."""

    root: str
    # published: the store has all of it; publishing: not yet; withdrawing: the store still has it;
    # closed: it is not open; unknown: no workspace has this root; refused: another folder has its place;
    # left: the store has it of this owner and machine, and `root` is its name.
    stage: Literal["published", "publishing", "withdrawing", "closed", "unknown", "refused", "left"]
    sources: int = 0  # that the store has
    waiting: int = 0  # that are to be sent, or removed
    refused: list[str] = []  # why the store does not take some sources, one text for each reason
    model_id: str = ""  # of the vectors that are sent; "": only words are
    words_only: str = ""  # why


class TeamElsewhere(Result, frozen=True, kw_only=True):
    """A workspace in a store that [team] named before, which may still have it."""

    root: str
    address: str  # with database and collection


class TeamStatus(Result, frozen=True, kw_only=True):
    """The team's store, to which the text of notes is sent."""

    address: str = ""  # "": [team] is wrong, as `error` says
    collection: str = ""
    reachable: bool | None = None  # whether the last call was answered; null: there was none
    error: str = ""  # why nothing is published now, or why the last call had no result; "" otherwise
    last_error: str = ""
    last_acknowledged: float | None = None  # unix seconds
    waiting: int = 0  # sources of all workspaces that are to be sent, or removed
    workspaces: list[TeamWorkspace] = []
    elsewhere: list[TeamElsewhere] = []


class ServerStatus(Result, frozen=True, kw_only=True):
    """The daemon."""

    version: str
    pid: int
    instance_id: str
    uptime_s: float
    memory_mb: float | None  # null if the system does not report it
    models: list[ModelStatus]
    errors: list[str]
    sqlite: str
    onnxruntime: str
    loop_lag_ms: float  # added to the latency of every request
    paused_until: float | None  # unix seconds: when embedding resumes; null if it is not paused
    # The limits that were tried and hold for the process that parses long notes: `privileges`, `files`,
    # `sockets` (and programs), `calls` (modes, signals, terminals); null before the first long note.
    parser_sandbox: list[records.SandboxLimit] | None
    team: TeamStatus | UnsetType = UNSET  # only with [team] in the user's configuration, and not for agents


class SkippedFile(Result, frozen=True, kw_only=True):
    """A file that matches the patterns but is not indexed."""

    path: str
    reason: str
    detail: str = ""  # of failed: the step and the kind of exception


class SourceWarning(Result, frozen=True, kw_only=True):
    """A file that is indexed with a defect."""

    path: str
    warning: str


class ModelChange(Result, frozen=True, kw_only=True):
    """The vectors of a new model, built while the old ones stay in use."""

    model_id: str
    done: int
    total: int


class WorkProgress(Result, frozen=True, kw_only=True):
    """The progress of a task."""

    stage: str
    done: int
    total: int


class SidecarCounts(Result, frozen=True, kw_only=True):
    """The numbers of .vec files read, written and ignored."""

    read: int
    written: int
    ignored: dict[str, int]  # reason → number


class WorkspaceSummary(Result, frozen=True, kw_only=True):
    """One registered workspace."""

    root: str
    state: Literal[records.State, "error"]  # error: it cannot be opened
    config: str | UnsetType = UNSET  # of a folder that cannot be written: where its configuration lies
    sources: int | UnsetType = UNSET  # of an open workspace
    chunks: int | UnsetType = UNSET
    errors: list[str] | UnsetType = UNSET  # newest last; of a workspace that is not open: the reason


class WorkspaceStatus(WorkspaceSummary, frozen=True, kw_only=True):
    """The status of a workspace; if it is not open, only `root`, `state` and `errors`."""

    first: bool | UnsetType = UNSET  # this and the next two as in `IndexState`
    renewed: records.Renewal | UnsetType = UNSET
    first_words: bool | UnsetType = UNSET
    pending: int | UnsetType = UNSET
    pending_files: int | UnsetType = UNSET
    pending_vectors: int | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    lag_ms: int | UnsetType = UNSET
    embedded: float | UnsetType | None = UNSET
    left_s: records.LeftSeconds | UnsetType = UNSET
    vectors: int | UnsetType = UNSET  # chunks with a vector
    unreadable: int | UnsetType = UNSET  # chunks in a script that the model cannot read, which get no vector
    beyond: int | UnsetType = UNSET  # chunks after the first 1,500 of a note, which get no vector, either
    skipped: list[SkippedFile] | UnsetType = UNSET  # the first of them
    skipped_total: int | UnsetType = UNSET
    warnings: list[SourceWarning] | UnsetType = UNSET  # the first of them
    warnings_total: int | UnsetType = UNSET
    copies: list[str] | UnsetType = UNSET  # conflict copies of sync programs, the first of them
    copies_total: int | UnsetType = UNSET
    templates: list[str] | UnsetType = UNSET  # template folders of Obsidian vaults, which are not indexed
    last_scan: float | UnsetType | None = UNSET  # unix seconds
    last_index: float | UnsetType | None = UNSET  # unix seconds: when everything was searchable
    last_health: records.ProbeOutcome | UnsetType | None = UNSET
    model_id: str | UnsetType = UNSET  # of the vectors in the index
    provider: str | UnsetType = UNSET
    last_check: records.ProbeOutcome | UnsetType | None = UNSET
    watching: str | UnsetType = UNSET  # the mechanism that detects changes
    gone: int | UnsetType = UNSET  # deleted sources that the index still keeps
    held: str | UnsetType = UNSET  # why they are kept longer
    building: ModelChange | UnsetType | None = UNSET
    rebuilding: WorkProgress | UnsetType | None = UNSET
    sidecars: SidecarCounts | UnsetType | None = UNSET  # null if they are turned off
    damaged_rows: int | UnsetType = UNSET
    size_bytes: int | UnsetType = UNSET  # of the index
    set_aside: list[str] | UnsetType = UNSET  # folders of older indexes, which contain older texts of notes
    degraded: list[str] | UnsetType = UNSET  # codes of current problems


class StatusResult(Result, frozen=True, kw_only=True):
    """The server and its workspaces."""

    server: ServerStatus
    workspaces: list[WorkspaceStatus]


class HealthCheck(Result, frozen=True, kw_only=True):
    """The result of the test search in one workspace."""

    name: str  # the workspace's root
    ok: bool
    detail: str


class HealthResult(Result, frozen=True, kw_only=True):
    """The results of a test search in each workspace."""

    ok: bool
    checks: list[HealthCheck]


class LoopLag(Result, frozen=True, kw_only=True):
    """The lag of the event loop, in milliseconds."""

    p50: float
    p99: float
    max: float


class RecentRequest(Result, frozen=True, kw_only=True):
    """The outcome of one request."""

    at: float  # unix seconds
    method: str
    ms: float
    answer_bytes: int
    failed: bool


class WatchedBatch(Result, frozen=True, kw_only=True):
    """A batch of changes reported by the watcher of a workspace."""

    at: float  # unix seconds
    workspace: str
    paths: list[str] | UnsetType = UNSET  # some of them, if the request names a workspace
    count: int  # of paths
    rescan: bool
    overflow: bool
    trouble: str


class DebugResult(Result, frozen=True, kw_only=True):
    """Facts for debugging."""

    version: str
    python: str
    system: str
    sqlite: str
    packages: dict[str, str]  # name → version
    telemetry_disabled: bool
    pid: int
    threads: list[str]
    descriptors: int | None  # null if the system does not report it
    loop_lag_ms: LoopLag
    requests: list[RecentRequest]  # newest last
    watched: list[WatchedBatch]


class SubscribeResult(Result, frozen=True, kw_only=True):
    """The workspaces whose events are sent from now on."""

    subscribed: bool
    workspaces: list[str]


class PauseResult(Result, frozen=True, kw_only=True):
    """Embedding is paused."""

    paused_until: float  # unix seconds


class ResumeResult(Result, frozen=True, kw_only=True):
    """Embedding resumes."""

    resumed: bool  # false: it was not paused


class ShutdownResult(Result, frozen=True, kw_only=True):
    """The daemon stops."""

    stopping: bool  # false: it is not idle, and continues to run


# workspace.*


class WorkspaceAddResult(Result, frozen=True, kw_only=True):
    """An added workspace, after its first scan."""

    root: str
    config: str  # path of its configuration
    created: bool  # whether that file is new
    sources: int
    skipped: int
    within: list[str]  # roots of the enclosing workspaces


class WorkspaceListResult(Result, frozen=True, kw_only=True):
    """The registered workspaces."""

    workspaces: list[WorkspaceSummary]


class WorkspaceRemoveResult(Result, frozen=True, kw_only=True):
    """A removed workspace."""

    root: str
    removed: bool


class WorkspaceConfigureResult(Result, frozen=True, kw_only=True):
    """The settings now in effect."""

    root: str
    config: WorkspaceConfig
    # Languages that a twentieth of the chunks or more are in, the most frequent first; [] without numpy.
    languages_found: list[Language]


# team.*


class TeamShareResult(Result, frozen=True, kw_only=True):
    """A workspace that is published from now on, or no more."""

    root: str
    shared: bool
    done: bool  # whether the store has all of it, or nothing any more; otherwise this follows by itself
    status: TeamStatus


class TeamDifference(Result, frozen=True, kw_only=True):
    """A source of which the store has something else than the index."""

    root: str
    path: str
    kind: Literal["missing", "other", "unknown"]  # in the store; unknown: to this machine


class TeamCheckResult(Result, frozen=True, kw_only=True):
    """The differences between the store and the indexes."""

    took_ms: float
    ok: bool  # none is left
    checked: int  # sources that the store has
    differences: list[TeamDifference]
    repaired: bool  # they are sent again

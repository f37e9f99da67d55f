"""The parameters of every method, as structs; `convert` checks them and names the place of an error."""

from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from memd.config import Weights, allowed_texts
from memd.errors import InvalidError
from memd.records import PER_SOURCE

DEFAULT_PAUSE_S = 3600.0  # arbitrary: a meeting, or a film
MAX_PAUSE_S = 7 * 86_400.0  # arbitrary: a week; to have no vectors at all, set provider = none
MAX_PATH_CHARS = 4096  # PATH_MAX of Linux
MAX_NAME_BYTES = 255  # NAME_MAX of Linux: of a file or folder in a path
# 64 KiB: far more than a prompt can want at once, far less than the wire's cap on answers.
MAX_BUDGET_TOKENS = 65_536
MAX_TEXT_CHARS = 500_000  # of a text that is edited: a request has at most 1 MiB
MAX_SESSIONS = 100  # of a project; arbitrary
MAX_KNOWN = 1000  # keys of `recall`; arbitrary: some hundred answers of a hook

# Lua's {} arrives as an empty array, which is accepted for these parameters, the only maps.
MAPS = frozenset({"weights", "source", "settings", "begins"})
NOTES = frozenset({"supersedes", "related"})  # each of several notes: its path or id

Share = Annotated[float, Meta(ge=0, le=1)]
Globs = str | list[str]  # of paths relative to the workspace's root; one match is enough
Path = Annotated[str, Meta(min_length=1, max_length=MAX_PATH_CHARS)]
Key = Annotated[str, Meta(pattern="^~?[0-9a-f]{16}$")]  # of a passage, as `recall` returns it; ~: named only


class Params(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parameters that every request accepts; rpc has already handled the last two."""

    workspace: Path | None = None
    agent: bool = False  # an agent reads the answer: private notes are left out, secrets masked
    progress: bool = False
    timeout_ms: Annotated[int, Meta(ge=1)] | None = None


class NoParams(Params, frozen=True, kw_only=True):
    """Only the common parameters."""


class HelloParams(Params, frozen=True, kw_only=True):
    """``memd.hello``: the client's name, version and protocols."""

    client: str = ""
    version: str = ""
    protocol: list[int] = []


class NarrowedParams(Params, frozen=True, kw_only=True):
    """Filters on sources."""

    tag: str | list[str] = []
    field: str | list[str] = []  # conditions on the front matter, in the syntax of `field:` in a query
    since: str | None = None  # a day or a span of days, in the syntax of `since:` in a query
    until: str | None = None


class FilteredParams(NarrowedParams, frozen=True, kw_only=True):
    """The number of hits, and filters on their sources."""

    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    per_source: Annotated[int, Meta(ge=1, le=1000)] = PER_SOURCE  # hits of one source, at most
    min_score: Share | None = None
    sync: bool | Annotated[int, Meta(ge=1)] = False  # wait for saved changes; a number: at most that many ms
    wait: bool = True  # for a loading model, and for the few vectors of a small first index: at most 2 s each


class QueryParams(FilteredParams, frozen=True, kw_only=True):
    """A query with filters and search settings."""

    query: str
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    fusion: Literal["weighted", "rrf"] | None = None
    weights: Weights | None = None


class ScopedParams(QueryParams, frozen=True, kw_only=True):
    """A query of one workspace, or of all that a team publishes."""

    path: Globs = []
    scope: Literal["workspace", "team"] = "workspace"

    @property
    def glob(self) -> Globs:
        """`path`, under the name that other methods use because their `path` is a source."""
        return self.path


class SearchParams(ScopedParams, frozen=True, kw_only=True):
    """``search``: ranked hits."""

    explain: bool = False  # explain the score of each hit
    prefix: bool = False  # the last word may be unfinished: if no chunk has it, complete it to a term


class TimelineParams(QueryParams, frozen=True, kw_only=True):
    """``timeline``: a query whose hits are listed by day."""

    glob: Globs = []  # the `path` of a search


class Begins(Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation that begins: what of a workspace is its project's."""

    # Relative to the root; "" is the root.
    folder: Annotated[str, Meta(max_length=MAX_PATH_CHARS)] | None = None
    project: Annotated[str, Meta(max_length=MAX_NAME_BYTES)] = ""  # name of its folder or repository
    sessions: Annotated[list[str], Meta(max_length=MAX_SESSIONS)] = []  # earlier conversations about it
    since: Annotated[int, Meta(ge=0, le=2**33)] | None = None  # unix seconds: when the last of them began


class RecallParams(ScopedParams, frozen=True, kw_only=True):
    """``recall``: the core notes and the hits of a search, within a budget."""

    budget_tokens: Annotated[int, Meta(ge=1, le=MAX_BUDGET_TOKENS)] = 2000
    superseded: bool = False  # include superseded notes, and those past their last day
    format: Literal["markdown", "xml"] = "markdown"
    core: bool = True  # the core notes that `path` allows come first; false: only hits
    nearest: bool = True  # include hits if none is a good match; false: then only the core
    sure: bool = False  # only hits that are most probably about the query, for a reader who did not ask
    # Keys of passages that the reader has already and that are left out; given, even if it is empty, the
    # answer has `keys`.
    known: Annotated[list[Key], Meta(max_length=MAX_KNOWN)] | None = None
    begins: Begins | None = None  # instead of hits: what is due, changed or new in a conversation's project


class WhyParams(QueryParams, frozen=True, kw_only=True):
    """``why``: the outcome of a search for one source."""

    path: Path  # of the source
    line: Annotated[int, Meta(ge=1)] | None = None  # of the source, to ask about the chunks at that line
    glob: Globs = []  # the `path` of a search


AnyQuery = SearchParams | TimelineParams | RecallParams | WhyParams  # parameters with a query


class SimilarParams(FilteredParams, frozen=True, kw_only=True):
    """``similar``: a chunk, by its id or by path and line, or a text."""

    path: Path | None = None
    line: Annotated[int, Meta(ge=1)] | None = None  # of `path`; default: its first chunk
    id: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    # Compare this text, which is no query; `path` is then a note to leave out.
    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)] | None = None
    glob: Globs = []  # the `path` of a search


class EntryOrigin(Struct, frozen=True, forbid_unknown_fields=True):
    """The author of an entry."""

    origin: Literal["agent", "human"] = "agent"
    client: str = ""
    session: str = ""


class ExtractMemoryParams(Params, frozen=True, kw_only=True):
    """``extract_memory``: a fact for a new entry, or a new text for an existing entry."""

    content: str
    topic: str | None = None  # required for a new entry with its own file; otherwise unchanged by default
    title: str | None = None  # required for a new entry; otherwise unchanged by default
    tags: list[str] | None = None
    supersedes: str | list[str] | None = None  # notes that it replaces: paths, or ids of entries
    related: str | list[str] | None = None  # notes that it links to: paths, or ids of entries
    update: Path | None = None  # id or path of the entry to revise
    hash: str | None = None  # expected hash of the file, from `get`; default: as memd last wrote it
    source: EntryOrigin = EntryOrigin()
    force: bool = False  # accept text that looks like a secret; only for people, refused to an agent
    daily: bool = False  # append it to memory/<today>.md, which decays with age, instead of a new file
    # It comes from outside, as from the web, and is not the user's word; a revision of it stays external.
    derived_from: Literal["external"] | None = None


class DebugParams(Params, frozen=True, kw_only=True):
    """``debug``: facts for a bug report."""

    lag_s: Annotated[float, Meta(ge=0, le=10)] = 0.2  # duration of the measurement of the event loop's lag


class ForgetParams(Params, frozen=True, kw_only=True):
    """``forget``: an entry that memd wrote, by its path or id."""

    path: Path | None = None
    id: Annotated[str, Meta(pattern="^[0-9a-f]{6,16}$")] | None = (
        None  # of an entry, in the place of its path
    )
    force: bool = False  # also if the file was changed; only for people
    # Keep the file, whoever wrote it, and exclude it from the index for good by a line in memory/.memdignore.
    keep_file: bool = False
    source: EntryOrigin = EntryOrigin()  # who asks, for the journal


class JournalParams(Params, frozen=True, kw_only=True):
    """``journal``: the actions on entries, newest first."""

    client: str | None = None  # only actions of this client; "agent", "human": without a client name
    conversation: str | None = None  # only actions in this conversation
    since: str | None = None  # a day, as in `since` of a search
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100


class GetParams(Params, frozen=True, kw_only=True):
    """``get``: a source or its lines, or the chunk of a hit."""

    path: Path | None = None
    id: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    start_line: Annotated[int, Meta(ge=1)] = 1
    end_line: Annotated[int, Meta(ge=1)] | None = None
    links: bool = True  # false: without the links from and to the source


class LinksParams(Params, frozen=True, kw_only=True):
    """``links``: a note, or none for what is broken or alone in the workspace."""

    path: Path | None = None
    # out: to notes, or to none that is there; in: from other notes; files: images, and files that are no
    # notes; mentions: words of other notes that are its title or alias, and no link; broken: links to no note
    # or heading; orphans: notes that no other note links to
    which: Literal["out", "in", "files", "mentions", "broken", "orphans"] = "in"
    offset: Annotated[int, Meta(ge=0)] = 0  # `next` of the previous page
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class NamesParams(Params, frozen=True, kw_only=True):
    """``names``: titles, aliases, headings and tags of the notes."""

    since: Annotated[int, Meta(ge=0)] = 0  # only of those that changed after this `generation`; 0: all
    after: str = ""  # only paths after this one, by code points: `next` of the previous page
    limit: Annotated[int, Meta(ge=1, le=5000)] = 2000


class ResolveParams(Params, frozen=True, kw_only=True):
    """``resolve``: a link as written, or a place as memd prints it."""

    link: Annotated[str, Meta(min_length=1, max_length=MAX_PATH_CHARS)]
    path: Path | None = None  # of the note that contains it


class OutlineParams(Params, frozen=True, kw_only=True):
    """``outline``: a text as it is in an editor."""

    text: Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
    path: Path  # of the note that it becomes, relative to the workspace


class HistoryParams(Params, frozen=True, kw_only=True):
    """``history``: a note."""

    path: Path


class SourcesParams(NarrowedParams, frozen=True, kw_only=True):
    """``sources``: a page of the indexed files, or of those that are skipped."""

    glob: Globs = []  # of their paths
    skipped: bool = False  # files that match the patterns of sources and are not indexed; none for agents
    # Only files with passages of these keys, as `recall` returns them.
    keys: Annotated[list[Key], Meta(max_length=MAX_KNOWN)] | None = None
    after: str = ""  # only paths after this one, by code points: `next` of the previous page
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class FieldsParams(NarrowedParams, frozen=True, kw_only=True):
    """``fields``: the keys in front matter, or the values of one key."""

    key: str | None = None  # list its values; a key inside a map has dots, as source.client
    glob: Globs = []  # of the notes' paths
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class ReviewParams(NarrowedParams, frozen=True, kw_only=True):
    """``review``: entries that agents wrote."""

    glob: Globs = []  # of their paths
    unused: bool = False  # only those that were never given to an agent
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


class IndexParams(Params, frozen=True, kw_only=True):
    """``index``: bring the index up to date."""

    wait: bool = True
    vectors: bool = True  # false: wait only for words
    rebuild: bool = False
    purge: bool = False


class CheckParams(Params, frozen=True, kw_only=True):
    """``check``: check the consistency of an index."""

    repair: bool = False


class PauseParams(Params, frozen=True, kw_only=True):
    """``pause``: pause embedding in every workspace."""

    duration_s: Annotated[float, Meta(gt=0, le=MAX_PAUSE_S)] = DEFAULT_PAUSE_S  # from now on


class WorkspaceAddParams(Params, frozen=True, kw_only=True):
    """``workspace.add``: make a folder a workspace."""

    path: Path
    force: bool = False
    nested: bool = False  # even if the folder's notes then leave the index of the enclosing workspace


class WorkspaceRemoveParams(Params, frozen=True, kw_only=True):
    """``workspace.remove``: forget a workspace and delete its index."""

    path: Path  # its root, which may be deleted; a path inside a workspace is refused


class WorkspaceConfigureParams(Params, frozen=True, kw_only=True):
    """``workspace.configure``: replace settings in its config.toml."""

    settings: dict[str, Any] | UnsetType = UNSET


class TeamShareParams(Params, frozen=True, kw_only=True):
    """``team.publish`` and ``team.unpublish``: the root of a workspace."""

    path: Path
    wait: bool = True  # until the store has it, or has nothing of it any more, at most some seconds


class TeamCheckParams(Params, frozen=True, kw_only=True):
    """``team.check``: compare what the store has of a published workspace, or of all of them."""

    path: Path | None = None
    repair: bool = False  # send what differs again


Kind = TypeVar("Kind", bound=Params)


class ShutdownParams(Params, frozen=True, kw_only=True):
    """``shutdown``: stop the daemon."""

    if_idle: bool = False  # only if it answers no request, indexes nothing and has no work pending


def convert(params: dict[str, Any], kind: type[Kind]) -> Kind:
    """Return checked parameters; null counts as absent.

    Raises:
        InvalidError: names the parameter, the expected value and the given one.
    """
    for key in params:
        if key not in kind.__struct_fields__:
            allowed = ", ".join(kind.__struct_fields__)
            raise InvalidError(f"$.{key}: unknown parameter; allowed are {allowed}")
    given = _without_null({key: _map(value) if key in MAPS else value for key, value in params.items()})
    try:
        converted = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).replace("`", "").rpartition(" - at ")
        if not fault:
            raise InvalidError(f"$: {place[0].lower()}{place[1:]}") from error
        fault = fault.replace(" | null", "")  # null means absent, and is not worth mentioning
        texts = allowed_texts(kind, place.removeprefix("$."))
        if fault.startswith("Invalid enum value") and texts:
            fault = f"{fault}; expected {' or '.join(texts)}"
        value = given.get(place.removeprefix("$."))
        got = f", got {value}" if isinstance(value, int | float) and ", got" not in fault else ""
        raise InvalidError(f"{place}: {fault[0].lower()}{fault[1:]}{got}") from error
    for key in given.keys() & _of_paths(kind):
        # Reject a path with a component that is too long for any file, before a system call fails with it.
        paths = getattr(converted, key)
        for path in [paths] if isinstance(paths, str) else paths or ():
            if any(len(name.encode(errors="replace")) > MAX_NAME_BYTES for name in path.split("/")):
                raise InvalidError(f"$.{key}: a name of more than {MAX_NAME_BYTES} bytes, as no file has")
    return converted


@cache
def _of_paths(kind: type[Params]) -> frozenset[str]:
    """Return the parameters that name files by path, or by path or entry id."""
    fields = msgspec.structs.fields(kind)
    return NOTES | {field.name for field in fields if Path in (field.type, *get_args(field.type))}


def _map(value: Any) -> Any:
    """Return a map parameter without its null values; an empty list counts as a map."""
    if value == []:
        return {}
    return _without_null(value) if isinstance(value, dict) else value


def _without_null(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}

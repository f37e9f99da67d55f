"""The parameters of every method, as structs; `convert` checks them, with exact places in its errors."""

from collections.abc import Collection
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from memd.config import Weights
from memd.errors import InvalidError
from memd.records import PER_SOURCE

DEFAULT_PAUSE_S = 3600.0  # arbitrary: a meeting, or a film
MAX_PAUSE_S = 7 * 86_400.0  # arbitrary: a week; who wants no vectors at all sets provider = none
MAX_PATH_CHARS = 4096  # PATH_MAX of Linux
MAX_NAME_BYTES = 255  # NAME_MAX of Linux: of a file or folder in a path
# 64 KiB: far more than a prompt can want at once, far less than the wire's cap on answers.
MAX_BUDGET_TOKENS = 65_536

# Lua's {} arrives as an empty array: where a map is wanted it is one. Every other parameter is none.
MAPS = frozenset({"weights", "source", "settings"})
NOTES = frozenset({"supersedes", "related"})  # each of several notes: its path or id

Share = Annotated[float, Meta(ge=0, le=1)]
Globs = str | list[str]  # of paths, relative to the workspace's root; any will do
Path = Annotated[str, Meta(min_length=1, max_length=MAX_PATH_CHARS)]


class Params(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What any request may carry; rpc has already acted on the last two."""

    workspace: Path | None = None
    agent: bool = False  # an agent reads the answer: private notes are left out, secrets masked
    progress: bool = False
    timeout_ms: Annotated[int, Meta(ge=1)] | None = None


class NoParams(Params, frozen=True, kw_only=True):
    """No parameters of its own."""


class HelloParams(Params, frozen=True, kw_only=True):
    """``memd.hello``: who calls."""

    client: str = ""
    version: str = ""
    protocol: list[int] = []


class FilteredParams(Params, frozen=True, kw_only=True):
    """How many hits, and which sources they may come from."""

    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    per_source: Annotated[int, Meta(ge=1, le=1000)] = PER_SOURCE  # hits of one source, at most
    min_score: Share | None = None
    tag: str | list[str] = []
    since: str | None = None  # a day or a span of days, as `since:` in a query takes it
    until: str | None = None
    sync: bool | Annotated[int, Meta(ge=1)] = False  # wait for what is saved; a number: so many ms at most
    wait: bool = True  # for a model that loads, and the few vectors of a small first index: 2 s each at most


class QueryParams(FilteredParams, frozen=True, kw_only=True):
    """A query, filters, and how to answer it."""

    query: str
    mode: Literal["hybrid", "keyword", "vector"] = "hybrid"
    fusion: Literal["weighted", "rrf"] | None = None
    weights: Weights | None = None


class SearchParams(QueryParams, frozen=True, kw_only=True):
    """``search``: ranked hits."""

    path: Globs = []
    explain: bool = False  # say of each hit what made its score
    prefix: bool = False  # the last word may go on: where no chunk has it, a term that begins so counts

    @property
    def glob(self) -> Globs:
        """What `path` is to a search, by the name that it has where `path` is a source."""
        return self.path


class RecallParams(QueryParams, frozen=True, kw_only=True):
    """``recall``: what is always known and what a search finds, within a budget."""

    path: Globs = []
    budget_tokens: Annotated[int, Meta(ge=1, le=MAX_BUDGET_TOKENS)] = 2000
    superseded: bool = False  # also notes that others say they supersede
    format: Literal["markdown", "xml"] = "markdown"
    core: bool = True  # the workspace's `core` first, but for what `path` keeps out; false: hits alone
    nearest: bool = True  # also hits of which none is a good match; false: then the core alone

    @property
    def glob(self) -> Globs:
        """As of SearchParams."""
        return self.path


class WhyParams(QueryParams, frozen=True, kw_only=True):
    """``why``: what became of one source in a search."""

    path: Path  # of the source
    line: Annotated[int, Meta(ge=1)] | None = None  # of it, to ask about what stands there
    glob: Globs = []  # what is `path` to a search


AnyQuery = SearchParams | RecallParams | WhyParams  # what has a query


class SimilarParams(FilteredParams, frozen=True, kw_only=True):
    """``similar``: a chunk, by its id or by path and line."""

    path: Path | None = None
    line: Annotated[int, Meta(ge=1)] | None = None  # of path; its first chunk without
    id: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    glob: Globs = []  # what is `path` to a search


class EntryOrigin(Struct, frozen=True, forbid_unknown_fields=True):
    """Who writes an entry."""

    origin: Literal["agent", "human"] = "agent"
    client: str = ""
    session: str = ""


class ExtractMemoryParams(Params, frozen=True, kw_only=True):
    """``extract_memory``: one fact to keep, or a new text for an entry that is kept."""

    content: str
    topic: str | None = None  # needed for a new entry in a file of its own; else it stays as it is
    title: str | None = None  # as the topic
    tags: list[str] | None = None
    supersedes: str | list[str] | None = None  # notes in whose place it holds: paths, or ids of entries
    related: str | list[str] | None = None  # notes that it links to: paths, or ids of entries
    update: Path | None = None  # id or path of the entry to revise
    hash: str | None = None  # of the file to revise as `get` gave it; without: it is as memd wrote it last
    source: EntryOrigin = EntryOrigin()
    # A person says so: also with what looks like a secret, or of an older memd's entry; refused to an agent.
    force: bool = False
    daily: bool = False  # append it to memory/<today>.md, which ages, in place of a file of its own


class DebugParams(Params, frozen=True, kw_only=True):
    """``debug``: what a bug report needs."""

    lag_s: Annotated[float, Meta(ge=0, le=10)] = 0.2  # how long the loop's lag is measured


class ForgetParams(Params, frozen=True, kw_only=True):
    """``forget``: an entry that memd wrote, by its path or id."""

    path: Path | None = None
    id: Annotated[str, Meta(pattern="^[0-9a-f]{6,16}$")] | None = (
        None  # of an entry, in the place of its path
    )
    force: bool = False  # a person says so: whatever the file holds by now
    # Keep the file, of whomever it is, and leave it out of the index for good: memory/.memdignore names it.
    keep_file: bool = False
    source: EntryOrigin = EntryOrigin()  # who forgets it, for the journal


class JournalParams(Params, frozen=True, kw_only=True):
    """``journal``: what was done with entries, the newest first."""

    client: str | None = None  # only what this client did; "agent", "human": who named none
    conversation: str | None = None  # only what was done in this conversation
    since: str | None = None  # a day, as `since` of a search
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 100


class GetParams(Params, frozen=True, kw_only=True):
    """``get``: a source or its lines, or the chunk of a hit."""

    path: Path | None = None
    id: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    start_line: Annotated[int, Meta(ge=1)] = 1
    end_line: Annotated[int, Meta(ge=1)] | None = None


class HistoryParams(Params, frozen=True, kw_only=True):
    """``history``: a note."""

    path: Path


class SourcesParams(Params, frozen=True, kw_only=True):
    """``sources``: which files are indexed, a page at a time."""

    after: str = ""  # only paths behind this one in the order of code points: `next` of the page before
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class IndexParams(Params, frozen=True, kw_only=True):
    """``index``: bring everything up to date."""

    wait: bool = True
    vectors: bool = True  # false: wait for words alone
    rebuild: bool = False
    purge: bool = False


class SyncParams(Params, frozen=True, kw_only=True):
    """``sync``: wait until what is saved is searchable."""


class CheckParams(Params, frozen=True, kw_only=True):
    """``check``: compare everything with everything."""

    repair: bool = False


class PauseParams(Params, frozen=True, kw_only=True):
    """``pause``: hold embedding, in every workspace."""

    duration_s: Annotated[float, Meta(gt=0, le=MAX_PAUSE_S)] = DEFAULT_PAUSE_S  # from now on


class SubscribeParams(Params, frozen=True, kw_only=True):
    """``subscribe``: follow what happens in one workspace, or in all."""


class WorkspaceAddParams(Params, frozen=True, kw_only=True):
    """``workspace.add``: make a folder a workspace."""

    path: Path
    force: bool = False
    nested: bool = False  # also where the folder's notes leave the index of the workspace around it


class WorkspaceRemoveParams(Params, frozen=True, kw_only=True):
    """``workspace.remove``: forget a workspace and delete its index."""

    path: Path  # its root, also one that is gone; a path inside of one is refused


class WorkspaceConfigureParams(Params, frozen=True, kw_only=True):
    """``workspace.configure``: replace settings in its config.toml."""

    settings: dict[str, Any] | UnsetType = UNSET


Kind = TypeVar("Kind", bound=Params)


class ShutdownParams(Params, frozen=True, kw_only=True):
    """``shutdown``: stop the daemon."""

    if_idle: bool = False  # only where it answers nobody, indexes nothing and holds nothing back


def convert(params: dict[str, Any], kind: type[Kind]) -> Kind:
    """Return checked parameters; where one may be left out, null is as good as nothing.

    Raises:
        InvalidError: which parameter, what was expected, what came.
    """
    for key in params:
        if key not in kind.__struct_fields__:
            allowed = ", ".join(kind.__struct_fields__)
            raise InvalidError(f"$.{key}: unknown parameter; allowed are {allowed}")
    given = {key: _map(value) if key in MAPS else value for key, value in params.items()}
    try:
        converted = msgspec.convert(_without_null(given, _optional(kind)), kind)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).replace("`", "").rpartition(" - at ")
        if not fault:
            raise InvalidError(f"$: {place[0].lower()}{place[1:]}") from error
        fault = fault.replace(" | null", "")  # absent is meant, and needs no word
        raise InvalidError(f"{place}: {fault[0].lower()}{fault[1:]}") from error
    for key in given.keys() & _of_paths(kind):
        _check_names(key, getattr(converted, key))
    return converted


@cache
def _of_paths(kind: type[Params]) -> frozenset[str]:
    """Return the parameters that name files: paths, and those that take ids of entries as well."""
    fields = msgspec.structs.fields(kind)
    return NOTES | {one.name for one in fields if Path in (one.type, *get_args(one.type))}


def _check_names(key: str, paths: str | list[str] | None) -> None:
    """Refuse a path with a name that no file can have, which the system calls an error of its own."""
    for path in [paths] if isinstance(paths, str) else paths or ():
        if any(len(name.encode(errors="replace")) > MAX_NAME_BYTES for name in path.split("/")):
            raise InvalidError(f"$.{key}: a name of more than {MAX_NAME_BYTES} bytes, which no file can have")


@cache
def _optional(kind: type[Params]) -> frozenset[str]:
    return frozenset(field.name for field in msgspec.structs.fields(kind) if not field.required)


def _map(value: Any) -> Any:
    """Return a parameter that is a map; all that is in one may be left out."""
    if value == []:
        return {}
    return _without_null(value, value.keys()) if isinstance(value, dict) else value


def _without_null(given: dict[str, Any], optional: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None or key not in optional}

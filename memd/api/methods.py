"""The methods of the protocol, with their parameters, results and deadlines.

The dispatcher, docs/protocol.md and the clients are derived from this table. The first line of a handler's
docstring describes its method. Imports only msgspec.
"""

from typing import Literal, NamedTuple

from memd.api import params, results


class Method(NamedTuple):
    """One method of the protocol."""

    handler: str  # module in memd.api, and function
    params: type[params.Params]
    result: type[results.Result]
    deadline_s: float | None  # None: no deadline, with progress on request
    # opened: the handler gets the open workspace; called again if it was reopened. read, files: it does so in
    # a reading thread, or in that of the workspace's disk. searched: in a reading thread, after the wait for
    # what was saved and for the model, whose outcome it gets, too.
    runs: Literal["apart", "opened", "read", "files", "searched"] = "apart"


METHODS: dict[str, Method] = {
    "memd.hello": Method("status.hello", params.HelloParams, results.HelloResult, 1.0),
    "ping": Method("status.ping", params.NoParams, results.PingResult, 1.0),
    "status": Method("status.status", params.NoParams, results.StatusResult, 1.0),
    "health": Method("status.health", params.NoParams, results.HealthResult, 5.0),
    "search": Method("search.search", params.SearchParams, results.SearchResult, 5.0, "searched"),
    "search_memory": Method("search.search", params.SearchParams, results.SearchResult, 5.0, "searched"),
    "timeline": Method("search.timeline", params.TimelineParams, results.TimelineResult, 5.0, "searched"),
    "recall": Method("recall.recall", params.RecallParams, results.RecallResult, 5.0, "searched"),
    "similar": Method("similar.similar", params.SimilarParams, results.SimilarResult, 5.0, "searched"),
    "why": Method("why.why", params.WhyParams, results.WhyResult, 5.0, "opened"),
    "links": Method("links.links", params.LinksParams, results.LinksResult, 5.0, "files"),
    "names": Method("links.names", params.NamesParams, results.NamesResult, 5.0, "read"),
    "resolve": Method("links.resolve", params.ResolveParams, results.ResolveResult, 5.0, "files"),
    "outline": Method("links.outline", params.OutlineParams, results.OutlineResult, 5.0, "read"),
    "get": Method("get.get", params.GetParams, results.GetResult, 5.0, "files"),
    "history": Method("journal.history", params.HistoryParams, results.HistoryResult, 5.0, "read"),
    "sources": Method("get.sources", params.SourcesParams, results.SourcesResult, 5.0, "files"),
    "fields": Method("get.fields", params.FieldsParams, results.FieldsResult, 5.0, "read"),
    "extract_memory": Method(
        "entries.extract_memory", params.ExtractMemoryParams, results.ExtractMemoryResult, 30.0
    ),
    "review": Method("review.review", params.ReviewParams, results.ReviewResult, 30.0, "read"),
    "forget": Method("entries.forget", params.ForgetParams, results.ForgetResult, None),
    "journal": Method("journal.journal", params.JournalParams, results.JournalResult, 5.0, "read"),
    "debug": Method("status.debug", params.DebugParams, results.DebugResult, 15.0),
    "index": Method("indexing.index", params.IndexParams, results.IndexResult, None),
    "sync": Method("indexing.sync", params.NoParams, results.SyncResult, None),
    "check": Method("indexing.check", params.CheckParams, results.CheckResult, None, "opened"),
    "pause": Method("indexing.pause", params.PauseParams, results.PauseResult, 1.0),
    "resume": Method("indexing.resume", params.NoParams, results.ResumeResult, 1.0),
    "subscribe": Method("status.subscribe", params.NoParams, results.SubscribeResult, 1.0),
    "workspace.add": Method("workspaces.add", params.WorkspaceAddParams, results.WorkspaceAddResult, None),
    "workspace.list": Method("workspaces.list_all", params.NoParams, results.WorkspaceListResult, 1.0),
    "workspace.remove": Method(
        "workspaces.remove", params.WorkspaceRemoveParams, results.WorkspaceRemoveResult, 30.0
    ),
    "workspace.configure": Method(
        "workspaces.configure", params.WorkspaceConfigureParams, results.WorkspaceConfigureResult, 30.0
    ),
    "team.status": Method("team.status", params.NoParams, results.TeamStatus, 5.0),
    "team.publish": Method("team.publish", params.TeamShareParams, results.TeamShareResult, 30.0),
    "team.unpublish": Method("team.unpublish", params.TeamShareParams, results.TeamShareResult, 30.0),
    "team.check": Method("team.check", params.TeamCheckParams, results.TeamCheckResult, 600.0),
}
# Their answers cover a whole index with its files and settings, including notes that are hidden from agents.
FOR_PEOPLE = frozenset({
    *("check", "debug", "index", "outline", "subscribe"),
    *("workspace.add", "workspace.configure", "workspace.remove"),
    *("team.status", "team.publish", "team.unpublish", "team.check"),
})  # fmt: skip
SHUTDOWN = "shutdown"  # it concerns the process, not the workspaces, so `Dispatcher` gets it as an argument

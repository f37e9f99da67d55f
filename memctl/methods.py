"""The protocol's methods as typed Python methods. Made by ``python -m tools.generate_client``; do not edit.

What is None is left out, and memd's default holds. docs/protocol.md says what each means and which errors it
has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from memctl import types

CALL_TIMEOUT_S = 30.0  # memd's own limits are lower: search 5 s, a write 30 s


def _said(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


class Methods:
    """The methods of memd, for one thread; `call` sends them."""

    def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = CALL_TIMEOUT_S,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Any:
        """Ask and wait for the answer; a client has it."""
        raise NotImplementedError

    def hello(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        client: str | None = None,
        version: str | None = None,
        protocol: list[int] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.HelloResult:
        """Versions, features and limits."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "client": client,
            "version": version,
            "protocol": protocol,
        }
        answer: types.HelloResult = self.call(
            "memd.hello",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def ping(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.PingResult:
        """Who is there."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.PingResult = self.call(
            "ping",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def status(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.StatusResult:
        """The server, and each workspace or the one that is named."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.StatusResult = self.call(
            "status",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def health(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.HealthResult:
        """Run a real ranked search in each workspace; some damage shows only then."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.HealthResult = self.call(
            "health",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def search(
        self,
        query: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        path: str | list[str] | None = None,
        explain: bool | None = None,
        prefix: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SearchResult:
        """Ranked hits."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "explain": explain,
            "prefix": prefix,
        }
        answer: types.SearchResult = self.call(
            "search",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def search_memory(
        self,
        query: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        path: str | list[str] | None = None,
        explain: bool | None = None,
        prefix: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SearchResult:
        """Ranked hits."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "explain": explain,
            "prefix": prefix,
        }
        answer: types.SearchResult = self.call(
            "search_memory",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def recall(
        self,
        query: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        path: str | list[str] | None = None,
        budget_tokens: int | None = None,
        superseded: bool | None = None,
        format: Literal["markdown", "xml"] | None = None,
        core: bool | None = None,
        nearest: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.RecallResult:
        """What is always known and what a search finds, within a budget of tokens."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "budget_tokens": budget_tokens,
            "superseded": superseded,
            "format": format,
            "core": core,
            "nearest": nearest,
        }
        answer: types.RecallResult = self.call(
            "recall",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def similar(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        path: str | None = None,
        line: int | None = None,
        id: int | None = None,
        glob: str | list[str] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SimilarResult:
        """The chunks of other sources that are most like one, by its id or by path and line."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "path": path,
            "line": line,
            "id": id,
            "glob": glob,
        }
        answer: types.SimilarResult = self.call(
            "similar",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def why(
        self,
        query: str,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        line: int | None = None,
        glob: str | list[str] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WhyResult:
        """Which stage dropped a source that a search did not return."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "line": line,
            "glob": glob,
        }
        answer: types.WhyResult = self.call(
            "why",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def get(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        path: str | None = None,
        id: int | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.GetResult:
        """A source, some of its lines, or the chunk of a hit, from the file as it is now."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
            "id": id,
            "start_line": start_line,
            "end_line": end_line,
        }
        answer: types.GetResult = self.call(
            "get",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def history(
        self,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.HistoryResult:
        """A note with all that it supersedes and all that supersedes it, oldest first."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
        }
        answer: types.HistoryResult = self.call(
            "history",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def sources(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SourcesResult:
        """Which files are indexed, by path; a page, and where the next one begins."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "after": after,
            "limit": limit,
        }
        answer: types.SourcesResult = self.call(
            "sources",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def extract_memory(
        self,
        content: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        topic: str | None = None,
        title: str | None = None,
        tags: list[str] | None = None,
        supersedes: str | list[str] | None = None,
        related: str | list[str] | None = None,
        update: str | None = None,
        hash: str | None = None,
        source: dict[str, Any] | None = None,
        force: bool | None = None,
        daily: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.ExtractMemoryResult:
        """Write one entry, durable when the reply comes; `indexed`: it is searchable, too."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "content": content,
            "topic": topic,
            "title": title,
            "tags": tags,
            "supersedes": supersedes,
            "related": related,
            "update": update,
            "hash": hash,
            "source": source,
            "force": force,
            "daily": daily,
        }
        answer: types.ExtractMemoryResult = self.call(
            "extract_memory",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def forget(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        path: str | None = None,
        id: str | None = None,
        force: bool | None = None,
        keep_file: bool | None = None,
        source: dict[str, Any] | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.ForgetResult:
        """Delete an entry; when the reply comes no file of memd's holds a word of it."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
            "id": id,
            "force": force,
            "keep_file": keep_file,
            "source": source,
        }
        answer: types.ForgetResult = self.call(
            "forget",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    def journal(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        client: str | None = None,
        conversation: str | None = None,
        since: str | None = None,
        limit: int | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.JournalResult:
        """What was done with entries, the newest first; what each is called is looked up now."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "client": client,
            "conversation": conversation,
            "since": since,
            "limit": limit,
        }
        answer: types.JournalResult = self.call(
            "journal",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def debug(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        lag_s: float | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.DebugResult:
        """What somebody who looks for a mistake wants to know. Quotes no note."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "lag_s": lag_s,
        }
        answer: types.DebugResult = self.call(
            "debug",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def index(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        wait: bool | None = None,
        vectors: bool | None = None,
        rebuild: bool | None = None,
        purge: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.IndexResult:
        """Compare the folder with the index, and wait until all of it is searchable."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "wait": wait,
            "vectors": vectors,
            "rebuild": rebuild,
            "purge": purge,
        }
        answer: types.IndexResult = self.call(
            "index",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    def sync(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.SyncResult:
        """Wait until what was saved before the call is searchable by its words."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.SyncResult = self.call(
            "sync",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    def check(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        repair: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.CheckResult:
        """Compare database, matrix, full text, sidecars and folder; mend what differs if asked to."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "repair": repair,
        }
        answer: types.CheckResult = self.call(
            "check",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    def pause(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        duration_s: float | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.PauseResult:
        """Embed nothing for so long, unless somebody resumes it."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "duration_s": duration_s,
        }
        answer: types.PauseResult = self.call(
            "pause",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def resume(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.ResumeResult:
        """Embed what waits."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.ResumeResult = self.call(
            "resume",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def workspace_add(
        self,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        force: bool | None = None,
        nested: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.WorkspaceAddResult:
        """Make a folder a workspace."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
            "force": force,
            "nested": nested,
        }
        answer: types.WorkspaceAddResult = self.call(
            "workspace.add",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    def workspace_list(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WorkspaceListResult:
        """The registered roots; an agent is told of no counts, as in `status`."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.WorkspaceListResult = self.call(
            "workspace.list",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def workspace_remove(
        self,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WorkspaceRemoveResult:
        """Forget a workspace and delete its index, never a note."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
        }
        answer: types.WorkspaceRemoveResult = self.call(
            "workspace.remove",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    def workspace_configure(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        settings: dict[str, Any] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WorkspaceConfigureResult:
        """Replace settings in config.toml, or show what they are."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "settings": settings,
        }
        answer: types.WorkspaceConfigureResult = self.call(
            "workspace.configure",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer


class AsyncMethods:
    """The methods of memd, for an event loop; `call` sends them."""

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_s: float | None = CALL_TIMEOUT_S,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Any:
        """Ask and wait for the answer; a client has it."""
        raise NotImplementedError

    async def hello(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        client: str | None = None,
        version: str | None = None,
        protocol: list[int] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.HelloResult:
        """Versions, features and limits."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "client": client,
            "version": version,
            "protocol": protocol,
        }
        answer: types.HelloResult = await self.call(
            "memd.hello",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def ping(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.PingResult:
        """Who is there."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.PingResult = await self.call(
            "ping",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def status(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.StatusResult:
        """The server, and each workspace or the one that is named."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.StatusResult = await self.call(
            "status",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def health(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.HealthResult:
        """Run a real ranked search in each workspace; some damage shows only then."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.HealthResult = await self.call(
            "health",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def search(
        self,
        query: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        path: str | list[str] | None = None,
        explain: bool | None = None,
        prefix: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SearchResult:
        """Ranked hits."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "explain": explain,
            "prefix": prefix,
        }
        answer: types.SearchResult = await self.call(
            "search",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def search_memory(
        self,
        query: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        path: str | list[str] | None = None,
        explain: bool | None = None,
        prefix: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SearchResult:
        """Ranked hits."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "explain": explain,
            "prefix": prefix,
        }
        answer: types.SearchResult = await self.call(
            "search_memory",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def recall(
        self,
        query: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        path: str | list[str] | None = None,
        budget_tokens: int | None = None,
        superseded: bool | None = None,
        format: Literal["markdown", "xml"] | None = None,
        core: bool | None = None,
        nearest: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.RecallResult:
        """What is always known and what a search finds, within a budget of tokens."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "budget_tokens": budget_tokens,
            "superseded": superseded,
            "format": format,
            "core": core,
            "nearest": nearest,
        }
        answer: types.RecallResult = await self.call(
            "recall",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def similar(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        path: str | None = None,
        line: int | None = None,
        id: int | None = None,
        glob: str | list[str] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SimilarResult:
        """The chunks of other sources that are most like one, by its id or by path and line."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "path": path,
            "line": line,
            "id": id,
            "glob": glob,
        }
        answer: types.SimilarResult = await self.call(
            "similar",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def why(
        self,
        query: str,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        limit: int | None = None,
        per_source: int | None = None,
        min_score: float | None = None,
        tag: str | list[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        sync: bool | int | None = None,
        wait: bool | None = None,
        mode: Literal["hybrid", "keyword", "vector"] | None = None,
        fusion: Literal["weighted", "rrf"] | None = None,
        weights: dict[str, Any] | None = None,
        line: int | None = None,
        glob: str | list[str] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WhyResult:
        """Which stage dropped a source that a search did not return."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "limit": limit,
            "per_source": per_source,
            "min_score": min_score,
            "tag": tag,
            "since": since,
            "until": until,
            "sync": sync,
            "wait": wait,
            "query": query,
            "mode": mode,
            "fusion": fusion,
            "weights": weights,
            "path": path,
            "line": line,
            "glob": glob,
        }
        answer: types.WhyResult = await self.call(
            "why",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def get(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        path: str | None = None,
        id: int | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.GetResult:
        """A source, some of its lines, or the chunk of a hit, from the file as it is now."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
            "id": id,
            "start_line": start_line,
            "end_line": end_line,
        }
        answer: types.GetResult = await self.call(
            "get",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def history(
        self,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.HistoryResult:
        """A note with all that it supersedes and all that supersedes it, oldest first."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
        }
        answer: types.HistoryResult = await self.call(
            "history",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def sources(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        after: str | None = None,
        limit: int | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.SourcesResult:
        """Which files are indexed, by path; a page, and where the next one begins."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "after": after,
            "limit": limit,
        }
        answer: types.SourcesResult = await self.call(
            "sources",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def extract_memory(
        self,
        content: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        topic: str | None = None,
        title: str | None = None,
        tags: list[str] | None = None,
        supersedes: str | list[str] | None = None,
        related: str | list[str] | None = None,
        update: str | None = None,
        hash: str | None = None,
        source: dict[str, Any] | None = None,
        force: bool | None = None,
        daily: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.ExtractMemoryResult:
        """Write one entry, durable when the reply comes; `indexed`: it is searchable, too."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "content": content,
            "topic": topic,
            "title": title,
            "tags": tags,
            "supersedes": supersedes,
            "related": related,
            "update": update,
            "hash": hash,
            "source": source,
            "force": force,
            "daily": daily,
        }
        answer: types.ExtractMemoryResult = await self.call(
            "extract_memory",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def forget(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        path: str | None = None,
        id: str | None = None,
        force: bool | None = None,
        keep_file: bool | None = None,
        source: dict[str, Any] | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.ForgetResult:
        """Delete an entry; when the reply comes no file of memd's holds a word of it."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
            "id": id,
            "force": force,
            "keep_file": keep_file,
            "source": source,
        }
        answer: types.ForgetResult = await self.call(
            "forget",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    async def journal(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        client: str | None = None,
        conversation: str | None = None,
        since: str | None = None,
        limit: int | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.JournalResult:
        """What was done with entries, the newest first; what each is called is looked up now."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "client": client,
            "conversation": conversation,
            "since": since,
            "limit": limit,
        }
        answer: types.JournalResult = await self.call(
            "journal",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def debug(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        lag_s: float | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.DebugResult:
        """What somebody who looks for a mistake wants to know. Quotes no note."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "lag_s": lag_s,
        }
        answer: types.DebugResult = await self.call(
            "debug",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def index(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        wait: bool | None = None,
        vectors: bool | None = None,
        rebuild: bool | None = None,
        purge: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.IndexResult:
        """Compare the folder with the index, and wait until all of it is searchable."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "wait": wait,
            "vectors": vectors,
            "rebuild": rebuild,
            "purge": purge,
        }
        answer: types.IndexResult = await self.call(
            "index",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    async def sync(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.SyncResult:
        """Wait until what was saved before the call is searchable by its words."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.SyncResult = await self.call(
            "sync",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    async def check(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        repair: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.CheckResult:
        """Compare database, matrix, full text, sidecars and folder; mend what differs if asked to."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "repair": repair,
        }
        answer: types.CheckResult = await self.call(
            "check",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    async def pause(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        duration_s: float | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.PauseResult:
        """Embed nothing for so long, unless somebody resumes it."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "duration_s": duration_s,
        }
        answer: types.PauseResult = await self.call(
            "pause",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def resume(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.ResumeResult:
        """Embed what waits."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.ResumeResult = await self.call(
            "resume",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def workspace_add(
        self,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        force: bool | None = None,
        nested: bool | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        timeout_s: float | None = None,
    ) -> types.WorkspaceAddResult:
        """Make a folder a workspace."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
            "force": force,
            "nested": nested,
        }
        answer: types.WorkspaceAddResult = await self.call(
            "workspace.add",
            _said(given),
            timeout_s=timeout_s,
            on_progress=on_progress,
        )
        return answer

    async def workspace_list(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WorkspaceListResult:
        """The registered roots; an agent is told of no counts, as in `status`."""
        given = {
            "workspace": workspace,
            "agent": agent,
        }
        answer: types.WorkspaceListResult = await self.call(
            "workspace.list",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def workspace_remove(
        self,
        path: str,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WorkspaceRemoveResult:
        """Forget a workspace and delete its index, never a note."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "path": path,
        }
        answer: types.WorkspaceRemoveResult = await self.call(
            "workspace.remove",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

    async def workspace_configure(
        self,
        *,
        workspace: str | None = None,
        agent: bool | None = None,
        settings: dict[str, Any] | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> types.WorkspaceConfigureResult:
        """Replace settings in config.toml, or show what they are."""
        given = {
            "workspace": workspace,
            "agent": agent,
            "settings": settings,
        }
        answer: types.WorkspaceConfigureResult = await self.call(
            "workspace.configure",
            _said(given),
            timeout_s=timeout_s,
        )
        return answer

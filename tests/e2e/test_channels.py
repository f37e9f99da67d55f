"""Every channel by which a note can reach an agent or another program: no secret, and no private note.

The channels are read from the code's own tables. One that is new fails the first test until it is listed
here, with what is asked through it.
"""

import json
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import forked
import pytest
from agent_session import agent
from daemon_process import NO_MODEL, Workspace, folder_of
from every_call import NAMES, calls
from imports.claude_mem import claude_mem_database
from imports.exports import CLAUDE, channel, gpt_conversation, gpt_node, gpt_text, said, written
from mcp.shared.exceptions import MCPError
from patience import PATIENCE
from team.test_rows import published
from test_secrets import SECRETS

from memctl.agents.hooks import EVENTS, TOOL
from memctl.client import RpcError
from memctl.commands import COMMANDS, completions
from memctl.mcp import prompts, resources, tools
from memctl.mcp.server import McpServer
from memd.api.methods import FOR_PEOPLE, METHODS
from memd.entries.secrets import find_secrets
from memd.imports.run import CLIENTS, MEMORIES

ONE_LINE = [text for text in SECRETS.values() if "\n" not in text and len(text) < 200]
KINDS = [*ONE_LINE[:: len(ONE_LINE) // 15 + 1], "postgres://app:kEtchup9@db.acme.dev/app"]
PASSWORD = "sw0rdfishy!"  # of a key that is called so; it has no shape
# A secret is found in an answer by each run of so many characters of it, in small letters.
RUN = 10

# method → what an agent asks, in addition to `every_call`; "" is told with each note's name.
ASKED: dict[str, list[dict[str, Any]]] = {
    "memd.hello": [{}],
    "ping": [{}],
    "status": [{}],
    "health": [{}],
    "search": [
        {"query": "weir", "limit": 1000, "per_source": 100, "min_score": 0.0, "explain": True},
        {"query": "weir key", "mode": "keyword", "limit": 1000, "min_score": 0.0, "explain": True},
        {"query": "we", "prefix": True, "min_score": 0.0},
        {"query": "tag:key weir", "min_score": 0.0},
    ],
    "search_memory": [{"query": "wier kye", "min_score": 0.0}],
    "timeline": [{"query": "weir key", "limit": 1000, "min_score": 0.0}],
    "recall": [
        {"query": "weir", "budget_tokens": 60_000, "min_score": 0.0, "format": form, "superseded": True}
        for form in ("markdown", "xml")
    ],
    "similar": [{"path": "", "limit": 1000, "min_score": 0.0}, {"text": "the key of the weir"}],
    "why": [{"path": "", "query": "weir key"}, {"path": "", "query": "nothing -weir", "mode": "keyword"}],
    "links": [
        *({"path": "", "which": which, "limit": 1000} for which in ("out", "in", "files", "mentions")),
        *({"which": which, "limit": 1000} for which in ("broken", "orphans")),
    ],
    "names": [{}, {"since": 1}],
    "resolve": [{"link": "", "path": "open.md"}],
    "get": [{"path": ""}, *({"id": number} for number in range(1, 90))],
    "history": [{"path": ""}],
    "sources": [{"limit": 1000}, {"skipped": True}],
    "fields": [{"limit": 1000}, *({"key": key, "limit": 1000} for key in ("mine", "title", "db.password"))],
    "extract_memory": [
        {"topic": "weirs", "title": "The weir", "content": "The weir and the key.", "related": ["open.md"]},
        {"content": "The weir.", "update": ""},
    ],
    "review": [{"limit": 1000}],
    "forget": [{"path": ""}],
    "journal": [{"limit": 1000}],
    "sync": [{}],
    "pause": [{"duration_s": 0.01}],
    "resume": [{}],
    "workspace.list": [{}],
}
REFUSED = {
    "workspace.add": {"path": "/x"}, "workspace.remove": {"path": "/x"}, "outline": {"text": "", "path": "x"},
    "team.publish": {"path": "/x"}, "team.unpublish": {"path": "/x"},
}  # fmt: skip
TOOLS: dict[str, list[dict[str, Any]]] = {
    "search_memory": [{"query": "weir key", "limit": 50}],
    "recall": [{"query": "weir key", "budget_tokens": 20_000}],
    "get": [{"path": ""}],
    "why_memory": [{"query": "weir key", "path": ""}],
    "extract_memory": [{"topic": "t", "title": "Weir", "content": "Of the weir's key."}],
    "forget_memory": [{"path": ""}],
    TOOL: [{"prompt": "which weir key is it?", "cwd": "/"}],  # in no list: a client's hook calls it
}
# What the server answers without the daemon has no text of a note.
MCP = {"initialize", "server/discover", "ping", "tools/list", "prompts/list", "resources/templates/list"}
MCP_ASKED = {"tools/call", "resources/list", "resources/read", "prompts/get"}
# memctl's commands print for the person at the terminal; these are read by agents.
OF_AGENTS = {"hook", "mcp", "recall"}
OF_PEOPLE = {
    "init", "search", "find", "open", "why", "similar", "get", "links", "ls", "fields", "add", "forget",
    "review", "journal", "import", "index", "sync", "pause", "watch", "status", "log", "health", "eval",
    "check", "ping", "workspaces", "team", "models", "agents", "editors", "completions", "start", "stop",
    "restart", "service", "uninstall", "lsp",
    "timeline",
}  # fmt: skip


def session_of(client: str, folder: Path, text: str) -> Path:
    """Write what a client keeps of a conversation with *text* in it."""
    now = "2026-05-01T08:00:00.000Z"
    if client == "claude-code":
        message = {"role": "user", "content": text}
        record = {"type": "user", "timestamp": now, "cwd": str(folder), "message": message}
        return written(folder / "5e55105e-0000-4000-8000-000000000001.jsonl", record)
    if client == "codex":
        head = {"type": "session_meta", "payload": {"id": "5e55105e", "cwd": str(folder)}}
        said_so = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": said_so}
        path = folder / "rollout-2026-05-01T10-00-00-5e55105e-0000-4000-8000-000000000001.jsonl"
        lines = (head, {"timestamp": now, "type": "response_item", "payload": item})
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return path
    if client == "chatgpt":
        whole = gpt_conversation(gpt_node("u1", "root", "user", gpt_text(text)), title=text)
        return written(folder / "conversations.json", [whole])
    if client == "claude":
        message = CLAUDE["chat_messages"][0] | {"text": text, "content": [{"type": "text", "text": text}]}
        return written(folder / "conversations.json", [CLAUDE | {"name": text, "chat_messages": [message]}])
    if client == "discord":
        return written(
            folder / "general.json", channel(said("9001", "2026-05-01T08:00:00.1+00:00", "a", text))
        )
    (folder / "MEMORY.md").write_text(f"# {text}\n\n{text}\n")
    return claude_mem_database(folder, text) if client == "claude-mem" else folder


IMPORTED = {"claude-code", "codex", "chatgpt", "claude", "discord", "openclaw", "cowagent"}
IMPORTED |= {"basic-memory", "letta", "claude-mem"}
MEMORIES_IMPORTED = {"claude-code", "codex", "gemini", "cursor"}  # notes, which are copied as they are


def test_every_channel_is_listed():
    """A new one: decide who reads it, and say here what is asked through it."""
    assert ASKED.keys() == METHODS.keys() - FOR_PEOPLE
    assert TOOLS.keys() - {TOOL} == {tool["name"] for tool in tools.listed()}
    server = McpServer(None, sys.stdout.buffer)
    assert set(server._known) == MCP
    assert set(server._asked) == MCP_ASKED
    assert [one["name"] for one in prompts.LISTED] == ["recall"]
    assert [one["name"] for one in resources.TEMPLATES] == ["note"]
    assert {kind for events in EVENTS.values() for kind in events.values()} == {"start", "prompt", "end"}
    assert set(COMMANDS) == OF_PEOPLE | OF_AGENTS
    assert completions.OF_NOTES.keys() == {"field", "tag"}
    assert CLIENTS.keys() == IMPORTED
    assert MEMORIES.keys() == MEMORIES_IMPORTED


def hostile(number: int, secret: str) -> str:
    """Return a note that has a secret wherever a note has something."""
    quoted = json.dumps(secret)
    front = f"title: {quoted}\naliases: [{quoted}]\nsupersedes: [{quoted}]\nrelated: {quoted}\n"
    front += f"{quoted}: weir\nmine: {quoted}\nmap: {{{quoted}: {quoted}}}\ntags: [key, {quoted}]\n"
    front += f"db: {{user: ada, password: {json.dumps(PASSWORD)}}}\nPasswd: {json.dumps(PASSWORD)}\n"
    body = f"# Key {number} {secret}\n\nThe weir of [[{secret}]] has the key {secret} today.\n\n"
    body += f"## Key {secret}\n\n[the key](<{secret}>) is [here](https://ada:{PASSWORD}@weir.example/x).\n"
    return f"---\n{front}---\n{body}"


PRIVATE = "---\nprivate: true\ntitle: Zephyrineword\naliases: [quinceword]\nmine: quinceword\n---\n"
PRIVATE += "# Quinceword\n\nThe weir of quinceword. See [[open]].\n"
OPEN = "---\nmine: x\n---\n# Open\n\nThe weir of [[kept]] is open. See [it](kept.md).\n"
WORDS = ("quinceword", "zephyrineword", "hidden/", "diary/")  # of what is kept from agents


@pytest.fixture(scope="module")
def daemon(module_daemon):
    return module_daemon.start()


def written_notes() -> dict[str, str]:
    """Return path → text: a secret of each kind in each place of a note, and private notes."""
    notes = {f"{number:02}.md": hostile(number, secret) for number, secret in enumerate(KINDS)}
    diary = PRIVATE.replace("private: true\n", "")
    notes |= {
        "README.md": f"---\ndescribes: {json.dumps(KINDS[0])}\n---\n# Of the root\n",
        "hidden/README.md": PRIVATE.replace("---\n#", "describes: quinceword\n---\n#"),
        "diary/index.md": "---\ndescribes: quinceword\n---\n# Diary\n",
        "MEMORY.md": f"# Of the core\n\nThe key of the core: {KINDS[1]}.\n",
        "memory/MEMORY.md": PRIVATE,
    }
    notes |= {"open.md": OPEN, "hidden/kept.md": PRIVATE, "diary/kept.md": diary}
    return notes | dict.fromkeys(NAMES, "# Weir\n\nAnother weir.\n")


@pytest.fixture(scope="module")
def kept(daemon, tmp_path_factory):
    """A workspace of them, with entries and what hooks tell."""
    root = tmp_path_factory.mktemp("kept") / "notes"
    notes = written_notes()
    today = f"{datetime.now().astimezone():%Y-%m-%d}"
    port = f"The staging database listens on 5433, because 5432 is taken. Its key: {KINDS[3]}.\n"
    notes |= {"port.md": port, f"memory/{today}.md": port.replace("database", "server")}
    workspace = daemon.workspace(root, notes | {"memory/config.toml": 'agents_ignore = ["diary/"]\n'})
    for text in ("Of the weir of Ada.", "Of the weir of Bob."):
        entry = {"topic": "weirs", "title": text, "content": text, "related": ["open.md"]}
        workspace.call("extract_memory", **entry)
    return workspace


def runs_of(secret: str) -> Iterator[str]:
    """Yield what no answer may have of a text with a secret, in small letters."""
    for found in find_secrets(secret):
        hidden = secret[found.start : found.end].casefold()
        if len(hidden) < RUN:
            yield hidden
        some = (hidden[at : at + RUN] for at in range(len(hidden) - RUN + 1))
        yield from (one for one in some if one not in found.kind)


FORBIDDEN = {run for secret in KINDS for run in runs_of(secret)} | {PASSWORD.casefold()}


def texts_of(value: Any) -> Iterator[str]:
    """Yield each text of an answer, the keys of its maps, too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(key)
            yield from texts_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item)


def told_too_much(answer: Any, sent: Any = None) -> list[str]:
    """Return what an answer has of a secret or a private note that was not sent."""
    given = [text.casefold() for text in texts_of(sent) if text]
    whole = "\n".join(texts_of(answer)).casefold()
    for text in given:
        whole = whole.replace(text, "")
    return [part for part in (*FORBIDDEN, *WORDS) if part in whole]


def asked(workspace: Workspace, method: str, params: dict[str, Any]) -> Any:
    try:
        with workspace.daemon.client() as client:
            return client.call(method, {"workspace": str(workspace.root), **params}, timeout_s=60 * PATIENCE)
    except RpcError as error:
        return str(error)


def each_note(params: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
    """Return the call for each note, if it is about one: "" is its place."""
    place = next((key for key, value in params.items() if value == ""), None)
    return [params | {place: name} for name in names] if place else [params]


def names_of(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*.md"))


def test_no_method_tells_an_agent_a_secret_or_a_private_note(kept):
    """With every parameter there is, about each note; what was sent itself does not count."""
    names = [*names_of(kept.root), "quinceword", "Zephyrineword"]
    every = [one for one in calls(str(kept.root), "weir") if one[0] not in FOR_PEOPLE]
    every += [
        (method, one) for method in ASKED for params in ASKED[method] for one in each_note(params, names)
    ]
    every.sort(key=lambda call: call[0] == "forget")  # it deletes
    for method, params in every:
        answer = asked(kept, method, params | {"agent": True})
        assert not told_too_much(answer, params), (method, params)


def test_what_is_for_people_is_refused_to_agents(kept):
    for method in FOR_PEOPLE:
        assert "is for people" in asked(kept, method, {"agent": True, **REFUSED.get(method, {})})


def test_a_right_guess_of_a_secret_is_answered_as_a_wrong_one(kept):
    secret = KINDS[0]
    wrong = secret[:-4] + secret[-4:][::-1]
    assert find_secrets(wrong)
    for method, place in (
        *((method, "query") for method in ("search", "search_memory", "recall")),  # by words
        *(("why", key) for key in ("query", "path")),
        *((method, "path") for method in ("get", "history", "similar", "links", "forget")),
        *((method, key) for method in ("search", "sources", "fields", "review") for key in ("tag", "field")),
        *(("resolve", "link"), ("fields", "key"), ("journal", "client")),
        *(("extract_memory", key) for key in ("supersedes", "related", "update", "tags", "title")),
    ):
        answers = []
        for guess in (secret, wrong):
            value = f"mine={guess}" if place == "field" else guess
            given = {"query": "weir", "path": "open.md"} if method == "why" else {}
            given |= {"query": "weir"} if method == "search" else {}
            given |= {"mode": "keyword"} if place == "query" else {}
            given |= {"topic": "t", "content": "c", "title": "T"} if method == "extract_memory" else {}
            answer = asked(kept, method, given | {place: value, "agent": True})
            shown = json.dumps(answer, sort_keys=True).replace(json.dumps(guess)[1:-1], "GUESS")
            answers.append(timeless(json.loads(shown)))
        assert answers[0] == answers[1], (method, place)


def timeless(answer: Any) -> Any:
    if isinstance(answer, dict):
        of_time = {"took_ms", "timings_ms", "index", "hash", "id", "path_of_entry"}
        return {key: timeless(item) for key, item in answer.items() if key not in of_time}
    return [timeless(item) for item in answer] if isinstance(answer, list) else answer


def test_no_tool_resource_or_prompt_tells_a_secret_or_a_private_note(kept):
    names = names_of(kept.root)
    kept_away = [name for name in names if name.startswith(("hidden", "diary"))]

    async def session() -> list[tuple[Any, Any]]:
        told: list[tuple[Any, Any]] = []
        async with agent(kept) as client:
            for tool, params in ((tool, one) for tool, many in TOOLS.items() for one in many):
                for given in each_note(params, names if tool != "forget_memory" else kept_away):
                    result = await client.call_tool(tool, given)
                    told.append((given, result.model_dump()))
            listed = await client.list_resources()
            told.append((None, listed.model_dump()))
            for name in names:
                try:
                    read = await client.read_resource(f"{resources.PREFIX}{name}")
                    told.append((name, read.model_dump()))
                except MCPError as error:
                    told.append((name, str(error)))
            arguments = {"query": "weir key", "budget_tokens": "20000"}
            told.append((None, (await client.get_prompt("recall", arguments)).model_dump()))
        return told

    for sent, answer in anyio.run(session):
        assert not told_too_much(answer, sent), sent


@pytest.mark.parametrize(
    ("client", "event"), [(client, event) for client, events in EVENTS.items() for event in events]
)
def test_no_hook_tells_a_secret_or_a_private_note(kept, client, event):
    prompt = "On which port does the staging database listen?"
    told = {"cwd": str(kept.root), "prompt": prompt, "transcript_path": "/nowhere"}
    told |= {"session_id": f"{client}-{event}", "source": "startup"}
    done = forked.run(
        [sys.executable, "-m", "memctl", "hook", client, event],
        input=json.dumps(told).encode(), env=kept.daemon.environment | {"MEMD_HOOK_MS": "5000"},
        capture_output=True, timeout=80,
    )  # fmt: skip
    assert not told_too_much(done.stdout + done.stderr)
    kind = EVENTS[client][event]
    assert (b"<memd-recall>" in done.stdout) is (kind != "end")
    assert (b"masked" in done.stdout) or kind != "prompt"  # a start may have six newer entries


def test_completion_offers_no_secret(kept):
    """Neither as a key nor as a value, and nothing of private notes: others read a shell's history."""
    typed = ["", "mine=", "title=", "map.", "db.password=", "passwd=", "tags="]
    asked = [["--field", one] for one in typed] + [["--tag", ""]]
    told = [kept.memctl("completions", "bash", "--", "search", *words) for words in asked]
    assert "mine=" in told[0].stdout
    assert not told_too_much([done.stdout + done.stderr for done in told])


def test_the_journal_has_no_text_of_a_note(kept):
    entry = {"topic": "t", "title": "Quinceword", "content": "A text."}
    path = kept.call("extract_memory", **entry)["path"]
    kept.call("extract_memory", content="Of quinceword.", update=path)
    kept.call("forget", path=path)
    [journal] = list(kept.daemon.state.glob("journal/*.jsonl"))
    assert not told_too_much(journal.read_bytes())


def test_no_row_for_a_team_has_a_secret_or_a_private_note(notes):
    notes.save(written_notes())
    rows = published(notes, "diary/")
    assert len(rows) == len(KINDS) + len(NAMES) + 3  # open.md, README.md, MEMORY.md
    assert not told_too_much(json.dumps(list(rows.values())))


@pytest.mark.usefixtures("shared_daemon")
@pytest.mark.parametrize("client", sorted(IMPORTED))
def test_what_was_imported_tells_an_agent_no_secret(daemon, tmp_path, client):
    workspace = daemon.workspace(tmp_path / "notes", NO_MODEL | {"open.md": OPEN})
    path = session_of(client, folder_of(tmp_path / "source"), f"The weir has {KINDS[2]} today.")
    done = workspace.memctl("import", client, str(path))
    assert done.returncode == 0, done.stderr
    assert not told_too_much(done.stdout + done.stderr)
    workspace.call("sync")
    [page] = workspace.root.glob("memory/archives/**/*.md")
    assert "weir" in page.read_text()
    assert not told_too_much(page.read_text())
    named = {"path": str(page.relative_to(workspace.root))}
    for method, params in (
        ("get", named), ("search", {"query": "weir today"}), ("names", {}), ("sources", {}),
        ("recall", {"query": "weir today"}), ("why", named | {"query": "weir"}),
    ):  # fmt: skip
        answer = asked(workspace, method, params | {"agent": True})
        assert not told_too_much(answer), method

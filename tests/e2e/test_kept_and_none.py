"""Two workspaces that differ in notes that are kept from agents: an agent gets the same bytes from both."""

import json
import re
import time
from itertools import product
from pathlib import Path

import pytest
from agent_session import in_a_session
from daemon_process import Daemon, Workspace, folder_of, until
from every_call import calls
from patience import PATIENCE

from memctl.client import RpcError
from memd.api.methods import FOR_PEOPLE, METHODS

OPEN = {
    "memory/config.toml": 'agents_ignore = ["diary/"]\n',
    "memory/facts/weir-a1b2c3.md": "---\ntitle: Weir\nid: a1b2c3d4e5f60718\n---\nThe weir was mended.\n",
    "notes.md": "---\ntags: [shared]\nsupersedes: older\n---\n# Herons\n\nThe same: [[other]], [[k]].\n",
    "older.md": "---\nrelated: [other]\n---\n# Herons of old\n\nThe same sentence, and heronword.\n",
    "a/other.md": "# Other\n\nThe weir again: [[notes]] and [[kept]].\n",
    "build.py": "print('no note')\n",
    ".hidden.md": "Not even a note.\n",
}
PRIVATE = "---\nprivate: true\n"
KEPT = {
    "kept.md": f"{PRIVATE}tags: [shared, kept]\nsupersedes: notes.md\n---\nThe same sentence, quinceword.\n",
    "b/older.md": f"{PRIVATE}---\nThe same sentence, and quinceword. See [[notes]].\n",
    "other.md": f"{PRIVATE}aliases: [k]\n---\nA namesake of another note: quinceword.\n",
    "hidden/deep/kept.md": f"{PRIVATE}title: [broken\n---\nThe weir and quinceword.\n",
    "diary/kept.md": "# Diary\n\nDear diary: the same sentence, quinceword, the weir.\n",
    "memory/facts/kept-0a1b2c.md": f"{PRIVATE}title: Kept\nid: 0a1b2c3d4e5f6071\n"
    "source: {origin: agent}\n---\nWeir, quinceword.\n",
    "memory/facts/weir-a1b2c3d4.md": f"{PRIVATE}id: a1b2c3d4ffffffff\n---\nOf the same digits. quinceword\n",
    "memory/own/only-ffeedd.md": f"{PRIVATE}id: ffeeddccbbaa9988\n---\nAlone in its topic: quinceword.\n",
}
NEVER = ["never.md", "hidden/never.md", "never/kept.md", "memory/facts/never-123456.md", "memory/never"]
FOLDERS = ["hidden", "hidden/deep", "hidden/deep/", "diary", "b", "memory/own", "memory"]
ELSE = [
    "build.py", ".hidden.md", "memory/config.toml", "notes.md", "older.md", "../notes", "/etc/passwd",
    "a\0b.md",
]  # fmt: skip
IDS = ["0a1b2c", "0a1b2c3d4e5f6071", "a1b2c3", "a1b2c3d4e5f60718", "ffeeddccbbaa9988", "123456"]
# What differs between two daemons that have the same notes.
OWN = {
    "at", "created", "generation", "hash", "id", "index_generation", "instance_id", "lag_ms", "loop_lag_ms",
    "memory_mb", "modified", "pid", "paused_until", "time", "timings_ms", "took_ms", "updated", "uptime_s",
}  # fmt: skip
_ENTRY = re.compile(r"-[0-9a-f]{6}\.md|answered in [\d.]+ ms|[0-9a-f]{16,}")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A daemon for a workspace with kept notes, and one for the same without them."""
    home = tmp_path_factory.mktemp("pair")
    daemons = [Daemon(folder_of(home / name)) for name in ("with", "none")]
    try:
        pair = [
            daemon.start().workspace(daemon.home / "notes", notes)
            for daemon, notes in zip(daemons, (OPEN | KEPT, OPEN), strict=True)
        ]
        for one in pair:
            until(lambda one=one: one.call("search", query="senttence")["corrected"])
        yield pair
        for daemon in daemons:
            assert daemon.untruths() == []
    finally:
        for daemon in daemons:
            daemon.close()


def told(workspace: Workspace, method: str, params: dict) -> str:
    """Return the bytes of an answer or error but for what two daemons never share."""
    root = str(workspace.root)
    given = json.loads(json.dumps(params).replace("ROOT", root))
    # Asked again while the model is late on a loaded machine, or one of the two is still indexing a write.
    stop = time.monotonic() + 20 * PATIENCE
    while time.monotonic() < stop:
        try:
            with workspace.daemon.client() as client:
                answer = client.call(
                    method, {"workspace": root, "agent": True, **given}, timeout_s=60 * PATIENCE
                )
        except RpcError as error:
            return _plain(str(error), root)
        if not answer.get("degraded") and '"busy"' not in json.dumps(answer):
            break
    return _plain(answer, root)


def _plain(answer: object, root: str) -> str:
    text = json.dumps(_without_own(answer)).replace(root, "ROOT").replace(str(Path(root).parent), "HOME")
    return _ENTRY.sub("…", text)


def _without_own(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_own(one) for key, one in value.items() if key not in OWN}
    return [_without_own(one) for one in value] if isinstance(value, list) else value


def asked() -> list[tuple[str, dict]]:
    """Return what an agent may ask about what is kept, by every method and spelling."""
    written = ("{}", "./{}", "a/../{}", "ROOT/{}", "{}/")
    named = [form.format(path) for path in KEPT for form in written] + [path.upper() for path in KEPT]
    named += NEVER + FOLDERS + ELSE
    found = [(method, {"path": path}) for method, path in product(("get", "similar", "history"), named)]
    found += [("why", {"path": path, "query": "the same sentence"}) for path in named]
    found += [("forget", {"path": path}) for path in named if path.removeprefix("./") not in OPEN]
    found += [("forget", {"id": one}) for one in IDS if not one.startswith("a1b2c3")]
    fact = {"topic": "facts", "title": "A fact", "content": "The weir is mended."}
    for name in [*KEPT, "./kept.md", "ROOT/hidden/deep/kept.md", *NEVER, *FOLDERS, *ELSE[:3], *IDS]:
        found += [("extract_memory", fact | {"update": name})]
        if name not in ("a1b2c3", "a1b2c3d4e5f60718"):
            found += [("extract_memory", fact | {key: [name]}) for key in ("supersedes", "related")]
    for query in (
        "quinceword",
        "quincewort",
        "herno",
        "the same sentence",
        "weir tag:kept",
        "title:Kept",
        "diary",
    ):
        for mode in ("hybrid", "keyword", "vector"):
            asks = {"query": query, "mode": mode, "min_score": 0.0, "limit": 20}
            found += [("search", asks), ("search", asks | {"explain": True}), ("recall", asks)]
        found += [("search", {"query": query, "path": path}) for path in ("hidden/**", "diary/**", "**")]
    found += [("sources", {"limit": 1000}), ("sources", {"after": "hidden", "limit": 2}), ("journal", {})]
    found += [
        ("get", {"id": 10**9}),
        ("similar", {"id": 10**9}),
        ("search", {"query": "quin", "prefix": True}),
    ]
    return found


def test_an_agent_gets_the_same_bytes_with_kept_notes_and_without(pair):
    differing = [
        (method, params, both)
        for method, params in asked()
        if len(set(both := [told(one, method, params) for one in pair])) != 1
    ]
    assert differing == []
    assert [bool(one.found("quinceword", mode="keyword")) for one in pair] == [True, False]
    assert len(asked()) > 400


def test_the_tools_of_an_agent_answer_alike(pair):
    tools = [("forget_memory", {"path": path}) for path in ("kept.md", "./kept.md", "never.md", "hidden")]
    tools += [("forget_memory", {"id": one}) for one in ("0a1b2c", "123456")]
    tools += [("why_memory", {"path": path, "query": "weir"}) for path in ("hidden", "kept.md", "build.py")]
    fact = {"topic": "facts", "title": "A fact", "content": "The weir is mended."}
    tools += [
        ("extract_memory", fact | {"related": [path]}) for path in ("a/../kept.md", "build.py", "ffeedd")
    ]
    answers = []
    for one in pair:
        results = in_a_session(one, *tools)
        answers.append([_plain([part.text for part in result.content], str(one.root)) for result in results])
    assert answers[0] == answers[1]


def test_every_method_answers_an_agent_alike(pair):
    """All that the protocol has, with what a client may say; what tells of a whole index is for people."""
    everything = [
        (method, params)
        for method, params in calls("ROOT", "heronword")
        if "id" not in params and method not in {"pause", "resume"}
    ]
    everything += [
        (method, {}) for method in ("pause", "resume", "ping", "health", "status", "workspace.list")
    ]
    seen: set[str] = set()
    for method, params in everything:
        if method == "search" and "extract_memory" in seen:  # the names of what was written are random
            continue
        both = [told(one, method, params) for one in pair]
        assert both[0] == both[1], (method, params)
        seen.add(method)
        if method in FOR_PEOPLE:
            assert "is for people" in both[0]
        if method == "extract_memory":
            for one in pair:
                one.call("index")
    assert seen == METHODS.keys()

"""Two workspaces with the same file names never show each other's words."""

import json
from pathlib import Path

import pytest
from daemon_process import Daemon

from memctl.client import RpcError
from memd.service import requests
from memd.service.handlers import METHODS

NAMES = ["notes.md", "2026-05-01.md", "memory/facts/one.md"]


@pytest.fixture
def pair(daemon, tmp_path):
    """Two workspaces: the first knows of herons and weirs only, the second of badgers and setts."""
    roots = []
    for folder, words in (("first", "heronword weirword"), ("second", "badgerword settword")):
        root = tmp_path / folder
        for name in NAMES:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                f"---\ntags: [shared]\n---\n# About {words}\n\nThe same sentence in both, then {words}.\n",
                encoding="utf-8",
            )
        roots.append(daemon.add(root))
    return daemon, *roots


def calls(root: str, word: str):
    """Return every call that answers with something of a workspace, with every parameter there is."""
    everything = {"limit": 1000, "min_score": 0.0}
    yield "memd.hello", {"client": "test", "version": "1", "protocol": [1]}
    yield "ping", {"timeout_ms": 1000}
    yield "search", {"query": word}
    yield "search", {"query": f'"{word}"'}
    yield "search", {"query": "the same sentence", **everything}
    yield "search", {"query": "the same sentence", "mode": "vector", **everything}
    yield "search", {"query": "the same", "weights": {"vector": 0.0, "keyword": 1.0}, **everything}
    yield "search", {"query": "x", "mode": "keyword", "fusion": "rrf", "path": "**"}
    for folder in ("first", "second"):
        yield "search", {"query": f"the same path:../{folder}/**", **everything}
        yield "search", {"query": "the same", "path": f"../{folder}/**", **everything}
    yield "search", {"query": "sentence", "tag": "shared", "since": "2020-01-01", "until": "2030-01-01"}
    yield "search", {"query": word, "sync": True}
    yield "search", {"query": f'{word} "the same" path:**', **everything, "explain": True, "limit": 100}
    yield (
        "search",
        {"query": "the same sentence", "mode": "keyword", **everything, "explain": True, "limit": 100},
    )
    for name in NAMES:
        yield "why", {"path": name, "query": "the same sentence"}
        yield "why", {"path": name, "query": "nothing", "line": 4, "mode": "keyword", **everything}
        yield "why", {"path": name, "query": "the same", "glob": "../**", "limit": 1}
    for folder in ("first", "second"):
        for name in (*NAMES, "memory/config.toml", "nothing.md"):
            yield "why", {"path": f"../{folder}/{name}", "query": "the same sentence"}
            yield "why", {"path": str(Path(root).parent / folder / name), "query": "the same sentence"}
            yield "similar", {"path": f"../{folder}/{name}"}
    for name in NAMES:
        yield "similar", {"path": name, "line": 4, **everything}
        yield "similar", {"path": name, "glob": "../**", "tag": "shared", "since": "2020-01-01"}
    for number in range(1, 12):
        yield "similar", {"id": number, **everything}
    yield "search_memory", {"query": word}
    yield "recall", {"query": "the same sentence", "budget_tokens": 60_000}
    for name in NAMES:
        yield "get", {"path": name}
        yield "get", {"path": name, "start_line": 1, "end_line": 3}
    for number in range(1, 12):
        yield "get", {"id": number}
    yield "index", {"wait": True}
    yield "index", {"rebuild": True, "progress": True}
    yield "sync", {}
    yield "check", {"repair": True, "progress": True}
    yield "index", {"purge": True}
    yield "subscribe", {}
    yield "status", {}
    yield "debug", {"lag_s": 0.0}
    yield "health", {}
    yield "workspace.list", {}
    yield "workspace.configure", {"settings": {"half_life_days": 31}}
    yield "extract_memory", {
        "topic": "facts", "title": "one", "content": "a fact", "tags": ["t"], "source": {"client": "test"},
    }  # fmt: skip
    yield "extract_memory", {"topic": f"../{word}", "title": "one", "content": "a fact"}
    for folder in ("first", "second"):
        yield "forget", {"path": f"../{folder}/{NAMES[0]}"}
    yield "forget", {"path": NAMES[0]}
    yield "workspace.remove", {"path": root}
    yield "workspace.add", {"path": root, "force": False}
    yield "index", {}
    yield "search", {"query": "the same sentence", **everything}


def test_no_method_and_no_parameter_is_left_out():
    """A new one must be asked for the other workspace's words, too."""
    asked = list(calls("/root", "word"))
    assert {method for method, _ in asked} == set(METHODS)
    kinds = [kind for kind in vars(requests).values() if isinstance(kind, type)]
    known = {field for kind in kinds if issubclass(kind, requests.Params) for field in kind.__struct_fields__}
    assert {name for _, params in asked for name in params} == known - {"workspace"}


def text_of(daemon: Daemon, method: str, params: dict, root: str) -> str:
    try:
        told = []
        with daemon.client() as client:
            listen = told.append if params.get("progress") else None
            answer = client.call(method, {"workspace": root, **params}, timeout_s=60, on_progress=listen)
        return json.dumps([answer, told])
    except RpcError as error:
        return str(error)


def test_no_answer_or_error_of_one_shows_a_word_of_the_other(pair):
    """Every method, asked in each workspace for the other one's words."""
    daemon, first, second = pair
    for root, own, foreign in ((first, "heronword", "badgerword"), (second, "badgerword", "heronword")):
        for method, params in calls(root, foreign):
            answer = text_of(daemon, method, params, root)
            shown = answer.replace(json.dumps(foreign), "").replace(f"'../{foreign}'", "")
            assert foreign not in shown, (method, params)
        assert own in text_of(daemon, "search", {"query": own}, root)


def test_who_follows_one_hears_nothing_of_the_other(pair):
    """Neither its root nor the name of a file that changes there; what changes here is told."""
    daemon, first, second = pair
    with daemon.client() as client:
        happening = client.events(first)
        for root, name in ((second, "settname.md"), (first, "weirname.md")):
            (Path(root) / name).write_text("# About water\n")
            daemon.call("sync", workspace=root)
        told = []
        for event in happening:
            told.append(event)
            if "weirname.md" in event.get("paths", ()):
                break
    assert {event["workspace"] for event in told} == {first}
    assert "settname" not in json.dumps(told)


def test_paths_of_the_other_workspace_cannot_be_read(pair):
    """Neither absolute nor by climbing up."""
    daemon, first, second = pair
    for path in (f"{second}/notes.md", "../second/notes.md"):
        with pytest.raises(RpcError) as caught:
            daemon.call("get", workspace=first, path=path)
        assert caught.value.code == "MEMD_NOT_FOUND"


def test_each_workspace_has_files_of_its_own(pair):
    """A database and a matrix each."""
    daemon, *_ = pair
    folders = [path for path in daemon.state.iterdir() if path.is_dir()]
    assert sorted(len(list(folder.glob("index.db"))) for folder in folders) == [1, 1]
    assert sorted(len(list(folder.glob("vectors.*.f32"))) for folder in folders) == [1, 1]


def test_without_a_name_two_workspaces_are_an_error_that_lists_them(pair):
    """The request must say which."""
    daemon, first, second = pair
    with pytest.raises(RpcError) as caught:
        daemon.call("search", query="x")
    assert caught.value.code == "MEMD_WORKSPACE"
    assert first in caught.value.message
    assert second in caught.value.message


def test_the_log_shows_no_word_of_any_note_or_query(pair):
    """Names, numbers and codes only."""
    daemon, first, _ = pair
    for method, params in calls(first, "badgerword"):
        text_of(daemon, method, params, first)
    daemon.found("heronword secretquery", workspace=first)
    with pytest.raises(RpcError):
        daemon.call("search", workspace=first, query=["badgerword"])
    daemon.stop()
    for word in ("heronword", "badgerword", "secretquery", "same sentence"):
        assert word not in daemon.log()

"""Two workspaces with the same file names never show each other's words."""

import json

import pytest
from daemon_process import Daemon

from memctl.client import RpcError

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
                f"# About {words}\n\nThe same sentence in both, then {words}.\n", encoding="utf-8"
            )
        roots.append(daemon.add(root))
    return daemon, *roots


def calls(root: str, word: str):
    """Return every call that answers with something of a workspace."""
    yield "search", {"query": word}
    yield "search", {"query": f'"{word}"'}
    yield "search", {"query": "the same sentence", "limit": 1000, "min_score": 0.0}
    yield "search", {"query": "the same sentence", "mode": "vector", "limit": 1000, "min_score": 0.0}
    yield "search", {"query": "x", "mode": "keyword", "fusion": "rrf", "path": "**"}
    yield "search_memory", {"query": word}
    yield "recall", {"query": "the same sentence", "budget_tokens": 60_000}
    for name in NAMES:
        yield "get", {"path": name}
    for number in range(1, 12):
        yield "get", {"id": number}
    yield "index", {}
    yield "status", {}
    yield "health", {}
    yield "workspace.configure", {}
    yield "extract_memory", {"topic": "facts", "title": "one", "content": "a fact"}


def text_of(daemon: Daemon, method: str, params: dict, root: str) -> str:
    try:
        return json.dumps(daemon.call(method, workspace=root, **params))
    except RpcError as error:
        return str(error)


def test_no_answer_or_error_of_one_shows_a_word_of_the_other(pair):
    """Every method, asked in each workspace for the other one's words."""
    daemon, first, second = pair
    for root, own, foreign in ((first, "heronword", "badgerword"), (second, "badgerword", "heronword")):
        for method, params in calls(root, foreign):
            answer = text_of(daemon, method, params, root)
            shown = answer.replace(json.dumps(foreign), "")
            assert foreign not in shown, (method, params)
        assert own in text_of(daemon, "search", {"query": own}, root)


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
    daemon.found("heronword secretquery", workspace=first)
    with pytest.raises(RpcError):
        daemon.call("search", workspace=first, query=["badgerword"])
    daemon.stop()
    for word in ("heronword", "badgerword", "secretquery", "same sentence"):
        assert word not in daemon.log()

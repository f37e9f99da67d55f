"""An answer holds what the pages, the protocol and the types promise."""

from typing import Any

import msgspec
import pytest
from daemon_process import folder_of, until
from every_call import NAMES, calls
from patience import PATIENCE

from memctl.client import RpcError
from memd.api.methods import METHODS


def test_status_names_what_there_is(sample):
    # It is told a moment after the last commit, which who waits for the words does not wait for.
    until(lambda: sample.status()["last_index"])
    status = sample.daemon.call("status")
    assert status["server"]["memory_mb"] > 10
    [model] = status["server"]["models"]
    assert model["state"] == "ready"
    [workspace] = status["workspaces"]
    assert workspace["root"] == str(sample.root)
    assert workspace["chunks"] == workspace["vectors"] + workspace["unreadable"]
    assert workspace["vectors"] >= 40
    assert workspace["pending"] == workspace["lag_ms"] == workspace["skipped_total"] == 0
    assert workspace["last_scan"]
    assert workspace["last_index"]


def test_progress_comes_as_notifications(daemon, tmp_path):
    notes = {f"{n}.md": f"# Note {n}\n\nabout the number {n}\n" * 3 for n in range(100)}
    root = folder_of(tmp_path / "notes", notes)
    daemon.call("workspace.add", path=str(root))
    seen = []
    with daemon.client() as client:
        client.call("index", {"workspace": str(root)}, timeout_s=60 * PATIENCE, on_progress=seen.append)
    assert seen
    assert all({"stage", "done", "total"} <= set(message) for message in seen)
    until(lambda: daemon.found("number 7", workspace=str(root)))


@pytest.mark.parametrize("method", ["search", "search_memory", "recall", "why"])
def test_a_misspelled_word_is_corrected_and_the_answer_says_so(sample, method):
    path = {"path": "recipes/sourdough.md"} if method == "why" else {}

    def corrected(query: str) -> dict[str, str]:
        answer = sample.call(method, query=query, **path)
        assert answer["degraded"] == []
        return answer["corrected"]

    assert corrected("sourdouhg starter") == {"sourdouhg": "sourdough"}
    assert corrected("sourdough") == corrected('"sourdouhg"') == corrected("sourdouhg_2") == {}


def test_a_misspelled_question_is_compared_by_the_meaning_of_its_right_words_too(sample):
    asked = {"mode": "vector", "limit": 1}
    best = [
        sample.call("search", query=f"{word} starter", **asked)["hits"] for word in ("sourdough", "sourdouhg")
    ]
    assert best[0][0]["score"] == best[1][0]["score"]


@pytest.mark.parametrize("form", ["--files", "--files0"])
def test_a_list_of_files_has_as_many_as_were_asked_for(sample, form):
    for command in (["search", "--nearest", "--min-score", "0", "note"], ["similar", "research/brca1.md"]):
        for limit in ("3", "7"):
            done = sample.memctl(*command, form, "--limit", limit)
            assert len(set(done.stdout.replace("\0", "\n").split())) == int(limit), done.stdout


def test_a_note_in_another_encoding_is_named_by_each_search(daemon, tmp_path):
    notes = {f"old/{number}.md": f"# Menu {number}\n\ncafé crème\n".encode("latin-1") for number in range(5)}
    root = folder_of(tmp_path / "notes", notes | {"new.md": "# Menu\n\ncafé au lait\n"})
    workspace = daemon.add(root)
    answer = daemon.call("search", query="café", workspace=workspace)
    assert answer["not_utf8"] == [f"old/{number}.md" for number in range(4)]
    assert (
        daemon.call("search", query="menu 4", mode="keyword", workspace=workspace)["hits"][0]["path"]
        == "old/4.md"
    )
    assert daemon.call("search", query="café", workspace=workspace, agent=True)["not_utf8"] == []
    done = daemon.memctl("search", "café", cwd=root / "old")
    assert (
        "memctl: not UTF-8, so that some words are not found: 0.md, 1.md, 2.md, … (memctl status)\n"
        in done.stderr
    )
    for number in range(4):
        (root / "old" / f"{number}.md").write_text("café crème\n")
    answer = daemon.call("search", query="café", workspace=workspace, sync=True)
    assert answer["not_utf8"] == ["old/4.md"]
    (root / "old" / "4.md").unlink()
    assert daemon.call("search", query="café", workspace=workspace, sync=True)["not_utf8"] == []
    assert "UTF-8" not in daemon.memctl("search", "café", cwd=root).stderr


def test_every_answer_is_its_struct(daemon, tmp_path):
    text = "---\ntags: [shared]\n---\n# Herons\n\nThe same sentence, then a heron.\n"
    root = daemon.add(folder_of(tmp_path / "notes", dict.fromkeys(NAMES, text)))
    answered: set[str] = set()
    for method, given in calls(root, "heron"):
        try:
            with daemon.client() as client:
                answer: dict[str, Any] = client.call(
                    method, {"workspace": root, **given}, timeout_s=60 * PATIENCE
                )
        except RpcError:
            continue  # it has no answer
        answered.add(method)
        assert answer.get("took_ms", 1) > 0, method
        known = msgspec.convert(answer, METHODS[method].result)
        assert msgspec.json.decode(msgspec.json.encode(known)) == answer, (method, given)
    unanswered = {"forget"} | {method for method in METHODS if method.startswith("team.")}
    assert answered == METHODS.keys() - unanswered  # what it asks to forget is no entry, and there is no team

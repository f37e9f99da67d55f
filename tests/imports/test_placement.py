"""Which pages of the archive a conversation goes on in."""

import os
import re
import time

import pytest
from imports.conftest import answered, typed
from imports.exports import gpt_conversation, gpt_node, gpt_text, written

from memd.imports import conversation

ONE = "5e55105e-0000-4000-8000-000000000001"
TWO = "5e55105e-0000-4000-8000-000000000002"
TOKEN = "ghp_" + "9bX2kQ7vT4mZ1wR8sL5nC3yH6jD0fGpAeUiO"


def both(workspace, first, second, names=("a/session.jsonl", "b/session.jsonl")):
    """Write two session files, import them three times, and return the texts of the pages."""
    folder = workspace.session(*first, name=names[0]).parents[1]
    workspace.session(*second, name=names[1])
    found = [workspace.imports("claude-code", folder) for _ in range(3)]
    assert [(one["new"], one["grown"], one["left_alone"]) for one in found[1:]] == [([], [], [])] * 2
    return list(workspace.pages().values())


@pytest.mark.parametrize("ids", [({}, {}), ({"sessionId": ONE}, {"sessionId": TWO})])
@pytest.mark.parametrize("name", ["session.jsonl", f"{ONE}.jsonl"])
def test_two_files_of_one_name_are_two_conversations(workspace, ids, name):
    kept = both(
        workspace, [typed("heron", **ids[0]), answered("weir")], [typed("heron", **ids[1])],
        (f"a/{name}", f"b/{name}"),
    )  # fmt: skip
    assert sorted("weir" in text for text in kept) == [False, True]


@pytest.mark.parametrize("name", [f"{TWO}.jsonl", f"deep/{ONE}.jsonl"])
def test_a_forked_session_is_told_from_the_one_that_it_was_forked_from(workspace, name):
    """It begins with the other's records, which say the other's id; so may a copy in another folder."""
    begun = [typed("heron", sessionId=ONE), answered("weir", sessionId=ONE)]
    kept = both(
        workspace, [*begun, typed("first way", sessionId=ONE)], [*begun, typed("second way", sessionId=TWO)],
        (f"a/{ONE}.jsonl", f"b/{name}"),
    )  # fmt: skip
    assert len(kept) == 2
    assert ["first way" in text for text in kept] != ["second way" in text for text in kept]


def test_turns_that_are_no_longer_those_of_the_page_get_a_page_of_their_own(workspace):
    """A page is only ever extended: what it had stays, and each goes on by itself."""
    path = workspace.session(typed("heron"), answered("weir"))
    [page] = workspace.imports("claude-code", path)["new"]
    before = workspace.page()
    workspace.session(typed("heron"), answered("otter"))
    [other] = workspace.imports("claude-code", path)["new"]
    assert (workspace.root / page).read_text() == before
    assert "branch: 2\n" in (workspace.root / other).read_text()
    workspace.session(typed("heron"), answered("otter"), typed("pond"))
    assert workspace.imports("claude-code", path)["grown"] == [other]
    workspace.session(typed("heron"), answered("weir"), typed("lake"))
    assert workspace.imports("claude-code", path)["grown"] == [page]
    assert len(workspace.pages()) == 2


def test_a_conversation_of_an_export_that_was_answered_anew_is_kept_both_ways(workspace, tmp_path):
    """The branch that was seen last changes with a message that is edited."""
    for number, said in enumerate(("heron", "otter")):
        node = gpt_node("u", "root", "user", gpt_text(said), create_time=1_800_000_000 + number)
        workspace.imports("chatgpt", written(tmp_path / "conversations.json", [gpt_conversation(node)]))
    assert sorted(re.findall("heron$|otter$", "".join(workspace.pages().values()), re.MULTILINE)) == [
        "heron",
        "otter",
    ]


def test_a_branch_goes_on_when_the_other_one_was_deleted_or_changed(workspace):
    path = workspace.session(typed("heron"), answered("weir"))
    [page] = workspace.imports("claude-code", path)["new"]
    workspace.session(typed("heron"), answered("otter"))
    [other] = workspace.imports("claude-code", path)["new"]
    (workspace.root / page).write_text("mine\n")
    for turns in (1, 2):
        workspace.session(typed("heron"), answered("otter"), *[typed("until dusk")] * turns)
        assert workspace.imports("claude-code", path)["grown"] == [other]
        (workspace.root / page).unlink(missing_ok=True)
    assert workspace.imports("claude-code", path)["unchanged"] == 1


def unmasked(monkeypatch):
    """Let nothing be a secret yet."""
    monkeypatch.setattr(conversation, "mask", lambda text: text)


@pytest.mark.parametrize("grows", [False, True])
def test_a_token_that_is_known_since_is_masked_in_its_page(workspace, monkeypatch, grows):
    turns = [typed(f"my token is {TOKEN} here"), answered(f"so\n\n{TOKEN}\n\n- a\n- `{TOKEN}`")]
    with monkeypatch.context() as earlier:
        unmasked(earlier)
        [page] = workspace.imports("claude-code", workspace.session(*turns))["new"]
    assert TOKEN in workspace.page()
    path = workspace.session(*turns, *[typed("more")] * grows)
    assert workspace.imports("claude-code", path)["grown"] == [page]
    assert TOKEN not in workspace.page()


def test_the_pages_of_a_long_conversation_end_where_they_did_when_tokens_are_masked(workspace, monkeypatch):
    """Masked text has another length: no turn is lost at the end of a page, and none comes twice."""
    turns = [
        typed(f"turn {number} {TOKEN} " + "word " * 1_000, timestamp=f"2026-05-01T{number % 24:02}:00:00Z")
        for number in range(600)
    ]
    with monkeypatch.context() as earlier:
        unmasked(earlier)
        before = workspace.imports("claude-code", workspace.session(*turns))["new"]
    assert len(before) > 2
    found = workspace.imports("claude-code", workspace.session(*turns, answered("the end")))
    assert (found["grown"], found["new"]) == (before, [])
    whole = "".join((workspace.root / page).read_text() for page in before)
    assert re.findall(r"^turn (\d+) ", whole, re.MULTILINE) == [str(number) for number in range(600)]
    assert TOKEN not in whole
    assert "the end" in whole


@pytest.mark.parametrize("mask", [r"token is \[masked: a kind of before]", r"\[masked: wider] here"])
def test_a_secret_that_was_masked_by_another_shape_makes_no_second_page(workspace, monkeypatch, mask):
    """Shapes get other names, and reach farther or less far."""
    turns = [typed(f"my token is {TOKEN} here"), answered("so")]
    with monkeypatch.context() as earlier:
        earlier.setattr(
            conversation,
            "mask",
            lambda text: re.sub(rf"token is {TOKEN}|{TOKEN} here", mask.replace("\\", ""), text),
        )
        workspace.imports("claude-code", workspace.session(*turns))
    assert len(workspace.imports("claude-code", workspace.session(*turns, typed("more")))["grown"]) == 1
    assert len(workspace.pages()) == 1


def test_another_zone_of_the_machine_makes_no_second_page(workspace):
    """Times are written as the machine's clock shows them."""
    workspace.imports("claude-code", workspace.session(typed("heron"), answered("weir")))
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    path = workspace.session(typed("heron"), answered("weir"), typed("lake"))
    assert len(workspace.imports("claude-code", path)["grown"]) == 1


def test_a_page_that_has_tools_keeps_them(workspace):
    """An import that did not ask for them, as a hook's, takes none away."""
    call = answered([{"type": "tool_use", "name": "Bash", "input": {"command": "ls nest"}}])
    path = workspace.session(typed("heron"), call, answered("weir"))
    workspace.imports("claude-code", path, with_tools=True)
    path = workspace.session(typed("heron"), call, answered("weir"), typed("lake"))
    assert len(workspace.imports("claude-code", path)["grown"]) == 1
    assert "ls nest" in workspace.page()
    assert "lake" in workspace.page()

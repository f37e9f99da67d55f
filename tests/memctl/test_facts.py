"""`status` says what is unusual, and nothing of what is as always."""

import pytest
from sample_answers import known, status

from memctl.output import status as facts

ORDINARY = {
    "gone": 0, "held": "", "watching": "events", "building": None,
    "sidecars": {"read": 0, "written": 0, "ignored": {}}, "last_check": None,
}  # fmt: skip


def said(**changes):
    """Return the facts of a workspace by their label."""
    return facts_of(facts.workspace(known(**ORDINARY | changes)))


def facts_of(block):
    return {label.text.strip(): value.text for label, value in block.rows}


def test_a_workspace_where_all_is_ordinary_has_no_extra_line():
    """Nor has one of an older memd, which says nothing of these."""
    assert said() == facts_of(facts.workspace(known()))
    assert said().keys() == {"state", "content", "pending", "last scan", "last index", "size"}
    assert "sidecars" not in said(sidecars=None)


@pytest.mark.parametrize(
    ("changes", "label", "text"),
    [
        ({"gone": 1}, "gone", "1 source, kept for a day: memctl index --purge deletes it now"),
        ({"gone": 1200, "held": "1200 of 1201 are\x1b gone"}, "gone", "1200 of 1201 are␛ gone"),
        ({"watching": "polling"}, "watching", "by polling: this folder gives no reliable events"),
        ({"watching": "none"}, "watching", "not at the moment: the next scan finds changes"),
        (
            {"building": {"model_id": "abc", "done": 300, "total": 9001}},
            "building",
            "300 of 9,001 vectors of the new model abc",
        ),
        (
            {"sidecars": {"read": 1200, "written": 3, "ignored": {"model": 2, "corrupt": 1}}},
            "sidecars",
            "1,200 read, 3 written, 2 ignored (model), 1 ignored (corrupt)",
        ),
    ],
)
def test_what_is_unusual_has_a_line_of_its_own(changes, label, text):
    assert said(**changes)[label] == text


def test_the_daemon_says_how_late_it_comes_where_it_knows():
    answer = status()
    assert "loop lag" not in facts_of(facts.server(answer))
    answer["server"]["loop_lag_ms"] = 12.345
    assert facts_of(facts.server(answer))["loop lag"] == "12.3 ms"


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (None, None),
        (
            ["privileges", "files", "calls"],
            "the parser of long notes is limited: privileges, files, calls; missing: sockets",
        ),
        ([], "none for the parser"),
    ],
)
def test_the_daemon_says_which_limits_its_sandbox_has(limits, text):
    answer = status()
    answer["server"]["parser_sandbox"] = limits
    assert facts_of(facts.server(answer)).get("sandbox") == text


@pytest.mark.parametrize(
    ("changes", "model"),
    [
        ({"provider": "onnx"}, "onnx"),
        ({"provider": "none", "model_id": None}, "none"),
        ({"provider": "ollama", "model_id": "ollama:nomic@0123"}, "nomic"),
        ({"provider": "openai", "model_id": "openai:org/bge@0123"}, "org/bge"),
        ({"provider": "ollama", "model_id": None}, "ollama"),
    ],
)
def test_a_workspace_names_its_model_as_people_do(changes, model):
    assert said(**changes)["model"] == model


def test_the_last_check_says_when_and_what_it_found():
    at = 1_780_000_000.0
    for check, verdict in (
        ({"ok": True}, "no problems"),
        ({"ok": False}, "problems found: memctl check"),
        ({"ok": False, "detail": "2 findings\x1b"}, "2 findings␛"),
    ):
        assert said(last_check=check | {"at": at})["last check"] == f"{facts.moment(at)}, {verdict}"


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"chunks": 4090}, "not complete yet"), ({"chunks": 0}, "never"), ({"last_index": "now"}, "now")],
)
def test_a_part_that_is_indexed_is_not_called_never(changes, told):
    assert said(**{"last_index": None} | changes)["last index"] == told

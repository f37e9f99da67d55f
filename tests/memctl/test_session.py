"""Which conversation an entry comes from, by what its client says."""

import pytest

from memctl import session

ID = "2937150d-7ca7-4ca4-87ce-1c96abd092c3"


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"x-codex-turn-metadata": {"session_id": ID, "turn_id": "1"}}, ID),
        ({"sessionID": ID}, ID),
        ({"progressToken": 1, "vscode.conversationId": ID}, ID),
        ({"x-codex-turn-metadata": "no object", "sessionID": ["no id"]}, "around"),
        ({"sessionID": "x" * 201}, "around"),
        ({"sessionID": "two\nlines"}, "around"),
        ({}, "around"),
        (None, "around"),
        ("no object", "around"),
    ],
)
def test_the_call_says_it_or_else_the_variable_around_the_server(monkeypatch, meta, found):
    monkeypatch.setenv("CODEX_THREAD_ID", "around")
    monkeypatch.delenv("CLAUDE_CODE_SESSION_ID", raising=False)
    assert session.of_call(meta) == found


def test_without_any_an_author_has_no_conversation(monkeypatch):
    for name in session.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert session.named(session.around()) == {}
    assert session.named(ID) == {"session": ID}

"""Import of Codex's session files."""

import pytest
from imports.conftest import FIXTURES

SESSION = FIXTURES / "codex"
NAME = "rollout-2026-05-01T10-00-00-5e55105e-0000-4000-8000-000000000001.jsonl"
META = {"type": "session_meta", "payload": {"id": "5e55105e", "cwd": "/home/ada/project"}}


def item(role, text, **more):
    """Return a record of what was said."""
    kind = "output_text" if role == "assistant" else "input_text"
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]} | more
    return {"timestamp": "2026-05-01T08:00:00.000Z", "type": "response_item", "payload": payload}


def test_a_session_of_the_real_client_becomes_one_dated_page(workspace):
    found = workspace.imports("codex", SESSION)
    [path] = found["new"]
    assert path.startswith("memory/archives/codex/2026/2026-11-22-why-did-we-leave-the-old-queue-")
    assert workspace.body() == (
        "\n## User · 2026-11-22 10:52\n\nWhy did we leave the old queue?\n"
        "\n## Assistant · 10:52\n\nI look into the note.\n\n"
        "The note says that we left RabbitMQ because of its memory alarms.\n"
        "\n## User · 10:52\n\nA second question: does Postgres do?\n"
        "\n## Assistant · 10:52\n\nYes: `SKIP LOCKED` is what makes it work.\n"
    )
    assert workspace.front()["source"]["session"] == "01a202ac-4947-7373-9205-2cdc6f20cfd4"
    assert found["skipped"] == []


def test_tools_and_thinking_are_kept_only_when_asked_for(workspace):
    workspace.imports("codex", SESSION, with_tools=True)
    assert '## Tool exec_command · 10:52\n\n```\n{"cmd": "cat queue.md"}\n```' in workspace.page()
    assert "We left RabbitMQ because of its memory alarms.\n```" in workspace.page()
    assert "## Assistant (thinking) · 10:52\n\nThe user asks about the queue." in workspace.page()


@pytest.mark.parametrize(
    "noise",
    [
        item("user", "<environment_context>\n<cwd>noise</cwd></environment_context>"),
        item("user", "# AGENTS.md instructions for noise\n\n<INSTRUCTIONS>"),
        item("developer", "noise"), item("system", "noise"),
        item("user", "noise",
             internal_chat_message_metadata_passthrough={"content_item_kinds": ["hook.context"]}),
        {"type": "event_msg", "payload": {"type": "user_message", "message": "noise"}},
        {"type": "compacted", "payload": {"message": "noise", "replacement_history": [{"role": "user"}]}},
    ],
)  # fmt: skip
def test_what_the_program_wrote_is_not_kept(workspace, noise):
    workspace.imports(
        "codex", workspace.session(META, item("user", "kept"), noise, client="codex", name=NAME)
    )
    assert workspace.body() == "\n## User · 2026-05-01 10:00\n\nkept\n"


@pytest.mark.parametrize("is_one_object", [True, False])
def test_a_file_of_the_oldest_formats_is_read(workspace, is_one_object):
    first = {"id": "old", "timestamp": "2025-06-01T08:00:00Z", "instructions": None}
    records = [item("user", "kept")["payload"], item("assistant", "so be it")["payload"]]
    lines = [{"session": first, "items": records}] if is_one_object else [first, *records]
    name = NAME.removesuffix("l") if is_one_object else NAME
    workspace.session(*lines, client="codex", name=name)
    [page] = workspace.imports("codex", workspace.home / "codex")["new"]
    assert "/2025/2025-06-01-kept-" in page
    assert "## User\n\nkept\n\n## Assistant\n\nso be it\n" in workspace.page()


def test_a_name_that_the_user_gave_is_the_title(workspace):
    named = {"type": "event_msg", "payload": {"type": "thread_name_updated", "thread_name": "Queues"}}
    workspace.imports("codex", workspace.session(META, item("user", "x"), named, client="codex", name=NAME))
    assert workspace.front()["title"] == "Queues"


def test_a_subagents_session_is_named_and_left_out(workspace):
    meta = {"type": "session_meta", "payload": {"id": "x", "thread_source": "subagent"}}
    found = workspace.imports("codex", workspace.session(meta, item("user", "x"), client="codex", name=NAME))
    assert found["new"] == []
    assert "subagent" in found["skipped"][0]["why"]
    assert workspace.imports("codex", workspace.home / "codex", subagents=True)["new"]


def test_a_session_that_was_forked_has_what_was_said_since(workspace):
    first = "5e55105e-0000-4000-8000-000000000001"
    talk = [item("user", "one"), item("assistant", "two")]
    workspace.session(META, *talk, client="codex", name=NAME)
    for last, end in (("2", 2), ("3", 1)):
        meta = {"type": "session_meta", "payload": {"id": f"5e55105{last}", "forked_from_id": first}}
        name = NAME.replace("1.jsonl", f"{last}.jsonl")
        workspace.session(meta, META, *talk[:end], item("user", f"apart {last}"), client="codex", name=name)
    workspace.imports("codex", workspace.home / "codex")
    kept = "".join(page.partition("\n---\n")[2] for page in workspace.pages().values())
    assert [kept.count(word) for word in ("\none\n", "\ntwo\n", "apart 2", "apart 3")] == [1, 1, 1, 1]

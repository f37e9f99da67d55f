"""Files that are broken, hostile, or not what they should be: a clear report, and all else is imported."""

import json
import os
import signal
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imports.conftest import answered, typed
from imports.exports import gpt_conversation, gpt_node, gpt_text, written
from tests_support import many

from memd.entries.entry import flaw
from memd.imports import jsonl, run
from memd.imports.conversation import Conversation
from memd.imports.page import Settings, Slot, pages, transcript
from memd.imports.run import CLIENTS

GOOD = json.dumps(typed("kept")).encode() + b"\n"


def imported(workspace, raw):
    """Import a session file of these bytes; return what was skipped, and the turns."""
    path = workspace.session()
    path.write_bytes(raw)
    return workspace.imports("claude-code", path)["skipped"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{not json}\n", jsonl.NOT_JSON),
        (b'{"type":"user","mess\n', jsonl.NOT_JSON),
        (b"[1,2]\n", jsonl.NOT_OBJECT),
        (b"[" * 100_000 + b"\n", jsonl.NOT_JSON),
        (b'{"a":' * 100_000 + b"\n", jsonl.NOT_JSON),
        (b"\xff\xfe\x00\x00garbage\n", jsonl.NOT_JSON),
        (b"\x00\x00\x00\n", jsonl.NOT_JSON),
        (b'{"huge":"' + b"x" * jsonl.MAX_LINE_BYTES + b'"}\n', jsonl.TOO_LONG),
    ],
)
def test_a_bad_line_is_counted_and_the_others_are_kept(workspace, bad, why):
    [row] = imported(workspace, GOOD + bad + bad + GOOD.replace(b"kept", b"and this"))
    assert (why in row["why"], row["count"], row["first_line"]) == (True, 2, 2)
    assert "kept\n\nand this" in workspace.page()


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        # A session that runs is in the middle of its last line; that comes the next time.
        (GOOD + b'{"type":"user","message":{"content":"ha', "kept"),
        (GOOD + GOOD.replace(b"kept", b"last").strip(), "last"),
        # A lone surrogate, as JavaScript cuts an emoji: an escape that strict parsers refuse.
        (GOOD.replace(b"kept", rb"kept \ud83d"), "kept \ufffd"),
        (b"\xef\xbb\xbf" + GOOD, "kept"),
    ],
)
def test_what_is_no_fault_is_taken_and_not_reported(workspace, raw, kept):
    assert imported(workspace, raw) == []
    assert kept in workspace.page()


def test_bytes_that_are_no_utf_8_are_replaced_and_reported(workspace):
    [row] = imported(workspace, GOOD.replace(b"kept", b"caf\xe9 is kept"))
    assert "not UTF-8" in row["why"]
    assert "caf\ufffd is kept" in workspace.page()


def test_a_file_of_utf_16_is_reported_as_that(workspace):
    """PowerShell's > makes one; nine thousand bad lines would say nothing."""
    [row] = imported(workspace, GOOD.decode().encode("utf-16"))
    assert row["why"] == jsonl.UTF16


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_imported(workspace):
    good = workspace.session(typed("kept"), name="good.jsonl")
    (good.parent / "folder.jsonl").mkdir()
    (good.parent / "dangling.jsonl").symlink_to("nowhere")
    os.mkfifo(good.parent / "pipe.jsonl")
    found = workspace.imports("claude-code", good.parent)
    assert len(found["new"]) == 1
    assert {row["source"].rpartition("/")[2] for row in found["skipped"]} == {"dangling.jsonl", "pipe.jsonl"}


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_content_may_be_a_text_instead_of_blocks(workspace, client):
    talk = [{"type": "message", "role": role, "content": f"{role}'s words"} for role in ("user", "assistant")]
    records = [
        {"type": "response_item", "payload": one}
        if client == "codex"
        else {"type": one["role"], "message": one}
        for one in talk
    ]
    workspace.imports(client, workspace.session(*records, client=client))
    assert workspace.body() == "\n## User\n\nuser's words\n\n## Assistant\n\nassistant's words\n"


def test_an_empty_session_is_named(workspace):
    [row] = imported(workspace, b"")
    assert row["why"] == run.EMPTY
    assert workspace.pages() == {}


GIVEN_UP_S = 60  # a machine that is loaded takes seconds; looking for each end anew would take hours


@pytest.fixture
def patience():
    """Give up where nothing else would: a regular expression hears a signal."""

    def give_up(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(GIVEN_UP_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("client", "opening"),
    [
        ("claude-code", "<system-reminder>"), ("claude-code", "<bash-input>"),
        ("claude-code", "<command-name>"), ("claude-code", "<command-name></command-name><command-args>"),
        ("claude-code", "[Request interrupted by user"), ("claude-code", "<memd-recall>\n"),
        ("chatgpt", "\ue200"),
    ],
)  # fmt: skip
def test_4_megabytes_of_what_opens_and_never_closes_are_read_in_one_pass(workspace, client, opening):
    """Somebody's session may hold them, and a hook starts the import by itself."""
    said = opening * (4 * 1024 * 1024 // len(opening.encode()))
    if client == "chatgpt":
        node = gpt_node("u", "root", "user", gpt_text(f"kept {said}"))
        path = written(workspace.home / "conversations.json", [gpt_conversation(node)])
    else:
        path = workspace.session(typed("kept"), typed(said))
    workspace.imports(client, path)
    assert "kept" in "".join(workspace.pages().values())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["type", "message", "content", "role", "payload", "text", "timestamp", "attachment", "prompt", "cwd",
     "summary", "output", "input", "name", "action", "internal_chat_message_metadata_passthrough", "id",
     "mapping", "current_node", "parent", "author", "parts", "content_type", "recipient", "metadata",
     "conversation_id", "chat_messages", "sender", "uuid", "created_at", "create_time", "files", "embeds"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["user", "assistant", "text", "response_item", "message", "tool_use", "attachment", "human", "a",
     "Default", "2026-05-01T08:00:00Z"]
)  # fmt: skip
VALUES = st.recursive(
    JSON | WORDS,
    lambda inner: st.dictionaries(KEYS | WORDS, inner, max_size=5) | st.lists(inner, max_size=3),
    max_leaves=14,
)
RECORDS = st.lists(st.dictionaries(KEYS, VALUES, max_size=6), max_size=4)


def exported(client, records):
    """Return the text of a file in which these records stand where the client has its own."""
    if client in {"claude-code", "codex"}:
        return "".join(f"{json.dumps(record)}\n" for record in records)
    if client == "discord":
        return json.dumps({"channel": {"id": "1"}, "messages": records})
    named = {"uuid": "a", "conversation_id": "a", "chat_messages": [], "mapping": {}}
    return json.dumps([named | record for record in records])


@pytest.mark.parametrize("client", ["claude-code", "codex", "chatgpt", "claude", "discord"])
@settings(max_examples=many(150))
@given(records=RECORDS)
def test_no_record_of_any_shape_ends_an_import(tmp_path, client, records):
    path = tmp_path / "rollout-odd.jsonl"
    path.write_text(exported(client, records))
    for found in CLIENTS[client].read(jsonl.ClientFile(path, None)):
        assert isinstance(found, Conversation)
        chosen = Settings(client, with_tools=True, undated=datetime.now(UTC))
        for page in pages(transcript(found, with_tools=True), chosen, Slot(found.id)):
            assert flaw(page.raw, page.name) == ""
            assert page.raw.decode()


def test_an_answer_without_a_question_is_kept(workspace):
    """A session that was continued begins in its middle."""
    assert imported(workspace, json.dumps(answered("kept")).encode()) == []
    assert "## Assistant · 2026-05-01 10:00\n\nkept" in workspace.page()

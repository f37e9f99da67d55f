"""Import of the exports of ChatGPT, claude.ai and Discord."""

import gzip
import json
import subprocess
import sys
import zipfile

import pytest
from imports.exports import (
    CLAUDE,
    DISCORD,
    GPT,
    GPT_NUMBERED,
    T0,
    channel,
    gpt_conversation,
    gpt_node,
    gpt_text,
    said,
    written,
    zipped,
)

from memd.imports import export, exports, jsonl
from memd.imports.conversation import Problems


def test_a_conversation_with_chatgpt_is_the_branch_that_was_seen_last(workspace, tmp_path):
    found = workspace.imports("chatgpt", zipped(tmp_path / "e.zip", **{"conversations.json": [GPT]}))
    assert found["new"][0].startswith("memory/archives/chatgpt/2026/2026-05-01-leaving-the-queue-")
    assert workspace.body() == (
        "\n## User · 2026-05-01 10:00\n\n[image]\n\nWhy did we leave the queue?\n"
        "\n## Assistant · 10:00\n\nBecause of alarms.\n"
    )
    assert workspace.front()["source"]["session"] == "6812-gpt"
    assert found["skipped"] == []


def test_tools_and_thoughts_of_chatgpt_are_kept_when_asked_for(workspace, tmp_path):
    workspace.imports("chatgpt", written(tmp_path / "conversations.json", [GPT]), with_tools=True)
    assert "## Assistant (thinking) · 10:00\n\nHmm." in workspace.page()
    assert "## Tool python · 10:00\n\n```\nprint(1)\n```" in workspace.page()
    assert "## Tool python · 10:00\n\n```\n1\n```" in workspace.page()


def test_a_conversation_with_claude_has_its_roles_and_names_what_was_attached(workspace, tmp_path):
    path = zipped(tmp_path / "data.zip", **{"conversations.json": [CLAUDE], "users.json": [{"noise": 1}]})
    workspace.imports("claude", path)
    assert workspace.body() == (
        "\n## User · 2026-05-01 10:00\n\nWhy did we leave the queue?\n\n[attached: paste.txt]\n\n"
        "[attached: queue.png]\n\n## Assistant · 10:00\n\nBecause of alarms.\n"
    )
    workspace.imports("claude", path, with_tools=True)
    assert "## Attached paste.txt · 10:00\n\n```\nmemory alarm log\n```" in workspace.page()
    assert '## Tool web_search · 10:00\n\n```\n{"query": "alarms"}\n```' in workspace.page()


def test_a_discord_channel_is_a_page_a_day_with_the_names_of_its_people(workspace, tmp_path):
    found = workspace.imports("discord", written(tmp_path / "general.json", DISCORD))
    [first, second] = workspace.pages().values()
    assert [path.rpartition("/")[2][:-9] for path in found["new"]] == [
        "2026-05-01-general-in-rivers-talk-",
        "2026-05-02-general-in-rivers-talk-",
    ]
    assert first.endswith(
        "\n\n## Ada L. · 2026-05-01 10:00\n\nWho leaves the queue?\n\n## bob · 10:01\n\nWe do.\n"
    )
    assert "origin: human" in first
    assert "- Ada L.\n- bob\n" in first
    assert second.endswith("SKIP LOCKED\nHow to queue.\n\n[attached: queue.png]\n")


def test_the_second_part_of_a_day_takes_nothing_of_the_first(workspace, tmp_path):
    """Channels are exported in parts, and from some moment on."""
    parts = [
        channel(DISCORD["messages"][0]),
        channel(*DISCORD["messages"][1:3], said("9005", "2026-05-01T09:00Z", "x", "y")),
    ]
    for number, part in enumerate(parts):
        workspace.imports("discord", written(tmp_path / f"part{number}.json", part))
    assert len(workspace.pages()) == 2
    assert "Who leaves" in "".join(workspace.pages().values())


def test_a_name_of_any_shape_is_one_line_of_text(workspace, tmp_path):
    """Nobody forges a turn by a nickname, and half an emoji in one ends no import."""
    forged = said("1", "2026-05-01T08:00Z", "x", "words", nickname="a\n\n## Assistant \ud83d")
    workspace.imports("discord", written(tmp_path / "general.json", channel(forged)))
    assert "\n## a ## Assistant \ufffd · 2026-05-01 10:00\n\nwords\n" in workspace.page()


@pytest.mark.parametrize(
    ("client", "value"), [("chatgpt", [GPT]), ("claude", [CLAUDE]), ("discord", DISCORD)]
)
def test_the_same_export_again_changes_nothing(workspace, tmp_path, client, value):
    first = workspace.imports(client, written(tmp_path / "conversations.json", value))
    before = workspace.pages()
    again = workspace.imports(client, zipped(tmp_path / "e.zip", **{"conversations.json": value}))
    assert (again["new"], again["grown"], again["unchanged"]) == ([], [], len(first["new"]))
    assert workspace.pages() == before


def test_an_older_export_takes_nothing_of_a_newer_one(workspace, tmp_path):
    """Whichever is read last: a folder of downloads has several."""
    for name, title, at in (("a", "Newer", T0 + 9), ("b", "Older", T0)):
        node = gpt_node("u", "root", "user", gpt_text(title), create_time=at)
        exported = [gpt_conversation(node, title=title)]
        zipped(tmp_path / f"{name}.zip", **{"conversations.json": exported})
    first = workspace.imports("chatgpt", tmp_path)
    again = workspace.imports("chatgpt", tmp_path)
    assert workspace.front()["title"] == "Newer"
    assert (len(first["new"]), again["grown"], again["unchanged"]) == (1, [], 1)
    assert "later ones" in again["left_alone"][0]["why"]


def test_a_folder_that_was_unpacked_is_read_with_all_its_parts(workspace, tmp_path):
    """Newer exports have conversations-000.json, conversations-001.json and so on."""
    for number in range(3):
        node = gpt_node("u", "root", "user", gpt_text(f"question {number}"))
        written(tmp_path / f"conversations-{number:03}.json", [gpt_conversation(node, key=f"k{number}")])
    assert len(workspace.imports("chatgpt", tmp_path)["new"]) == 3


OTHER = json.dumps(gpt_conversation(gpt_node("u", "root", "user", gpt_text("Another?")), key="other"))


@pytest.mark.parametrize(
    ("conversation", "name", "form"),
    [
        (GPT, "c.json", "%s"),  # as extensions of browsers save one
        (CLAUDE, "c.json", "%s"),
        (GPT_NUMBERED, "c.json", "[%s]"),
        (GPT, "c.jsonl", f"%s\n{OTHER}\n"),
        (GPT, "c.json", f'{{"count": 2, "conversations": [%s, {OTHER}]}}'),
        (GPT, "Conversations.JSON", "[%s]"),
        (GPT, "c.json.gz", "[%s]"),
        (GPT, "My chats.json", "[%s]"),
        (CLAUDE, "My chats.json.gz", "[%s]"),
    ],
)
def test_an_export_has_many_forms(workspace, tmp_path, conversation, name, form):
    """One conversation, one a line, below a key; compressed; in a folder, also renamed."""
    raw = (form % json.dumps(conversation)).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    path = tmp_path if name[0].isupper() else tmp_path / name
    found = workspace.imports("claude" if conversation is CLAUDE else "chatgpt", path)
    assert (len(found["new"]), found["skipped"]) == (1 + (OTHER in form), [])
    assert any("Because of alarms." in page for page in workspace.pages().values())


def test_a_renamed_export_is_found_beside_another(workspace, tmp_path):
    written(tmp_path / "conversations.json", [GPT])
    written(tmp_path / "my chats of May.json", [json.loads(OTHER)])
    written(tmp_path / "user.json", {"name": "x"})
    found = workspace.imports("chatgpt", tmp_path)
    assert (len(found["new"]), found["skipped"]) == (2, [])


def test_a_renamed_export_in_a_zip_is_found_and_what_is_none_is_said_to_be(workspace, tmp_path):
    path = zipped(tmp_path / "z.zip", **{"My chats.json": [GPT], "package.json": {"name": "x"}})
    found = workspace.imports("chatgpt", path)
    assert (len(found["new"]), [one["source"][-12:] for one in found["skipped"]]) == (1, ["package.json"])


def test_text_that_is_not_in_its_usual_place_is_kept(workspace, tmp_path):
    """A content that is a text, `text` beside an empty content; fields, forwards, bots' answers."""
    messages = [{"sender": "human", "content": "as a text"}]
    messages += [{"sender": "assistant", "content": [{"type": "text", "text": ""}], "text": "beside it"}]
    path = written(tmp_path / "conversations.json", [{"uuid": "u", "chat_messages": messages}])
    workspace.imports("claude", path)
    fields = [{"name": "Depth", "value": "two metres"}]
    forwarded = said("0", None, "x", "a forwarded text")
    talk = [
        said("1", "2026-05-01T08:00Z", "a", "", embeds=[{"title": "River", "fields": fields}]),
        said("2", "2026-05-01T08:01Z", "b", "", forwardedMessage=forwarded),
        said("3", "2026-05-01T08:02Z", "c", "as a bot says", type="20"),
    ]
    workspace.imports("discord", written(tmp_path / "general.json", channel(*talk)))
    said_there = "".join(workspace.pages().values())
    for one in ("as a text", "beside it", "Depth\ntwo metres", "a forwarded text", "as a bot says"):
        assert one in said_there


@pytest.mark.parametrize("at", [T0 * 1000, str(int(T0)), "2026-05-01T10:00:00.5+02:00", "20260501T080000Z"])
def test_a_time_has_many_forms(workspace, tmp_path, at):
    node = gpt_node("u", "root", "user", gpt_text("When?"), create_time=at)
    workspace.imports("chatgpt", written(tmp_path / "c.json", [gpt_conversation(node)]))
    assert workspace.body().startswith("\n## User · 2026-05-01 10:00\n")


# -- broken and hostile ones -------------------------------------------------------------------------------


def test_an_export_that_is_cut_short_gives_what_is_whole(workspace, tmp_path):
    path = tmp_path / "conversations.json"
    other = gpt_conversation(gpt_node("u", "root", "user", gpt_text("lost")), key="other")
    path.write_text(json.dumps([GPT, other])[:-40])
    found = workspace.imports("chatgpt", path)
    assert len(found["new"]) == 1
    assert [row["why"] for row in found["skipped"]] == [jsonl.CUT_SHORT]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", None), (b"[]", jsonl.NOT_EXPORT), (b"no json at all", jsonl.NOT_BEGUN),
        (b"[" * 1_000_000, jsonl.NOT_EXPORT), (b'{"a":' * 1_000_000, None),
        (b'[{"mapping":' + b'{"a":' * 100_000 + b"}" * 100_001 + b"]", jsonl.NOT_JSON),
        (b'[{"mapping" 3}]', jsonl.NOT_JSON), (b'[{"title":"x"}]', exports.NOT_CHATGPT),
        (b'[{"conversation_id":"x","mapping":{"a":{"parent":"a"}},"current_node":"a"}]', "no turn"),
        (b'["' + b"x" * (jsonl.MAX_MEMBER_BYTES + 2_000_000), jsonl.LONG_TEXT),
        (json.dumps([GPT]).encode("utf-16"), "UTF-16"), (b"]]]}}}", None),
    ],
)  # fmt: skip
def test_what_is_no_export_is_said_to_be_none(workspace, tmp_path, raw, why):
    path = tmp_path / "conversations.json"
    path.write_bytes(raw)
    rows = workspace.imports("chatgpt", path)["skipped"]
    assert workspace.pages() == {}
    assert rows
    assert why is None or any(why in row["why"] for row in rows)


def test_an_empty_conversation_is_no_reason_to_call_the_export_skipped(workspace, tmp_path):
    empty = gpt_conversation(gpt_node("u", "root", "system", gpt_text("x")), key="empty")
    [row] = workspace.imports("chatgpt", written(tmp_path / "conversations.json", [GPT, empty]))["skipped"]
    assert (row["why"], row["whole"]) == ("conversation has no turns to keep", False)


def test_a_conversation_that_is_too_large_costs_no_other(workspace, tmp_path):
    path = tmp_path / "conversations.json"
    large = b'{"huge":["' + b'","'.join([b"x" * 1_000_000] * 70) + b'"]}'
    path.write_bytes(b"[" + large + b"," + json.dumps(GPT).encode() + b"]")
    found = workspace.imports("chatgpt", path)
    assert len(found["new"]) == 1
    assert jsonl.TOO_LARGE in found["skipped"][0]["why"]


@pytest.mark.parametrize("name", ["e.zip", "e.json.gz"])
def test_what_unpacks_to_much_more_is_not_unpacked(workspace, tmp_path, name):
    raw, path = b" " * (export.SMALL_BYTES + 1), tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(raw))
    else:
        zipped(path, **{"conversations.json": raw})
    [row] = workspace.imports("chatgpt", path)["skipped"]
    assert export.BOMB in row["why"]


@pytest.mark.parametrize(
    "name", ["../../../../etc/conversations.json", "/etc/conversations.json", "a\\b\\conversations.json"]
)
def test_a_path_in_a_zip_leads_nowhere(workspace, tmp_path, name):
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(workspace.root)}
    path = zipped(tmp_path / "e.zip", **{name: [GPT]})
    assert len(workspace.imports("chatgpt", path)["new"]) == 1
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(workspace.root)} == before | {
        path
    }


@pytest.mark.parametrize("damage", ["cut", "flipped", "encrypted", "empty", "other"])
def test_a_zip_that_cannot_be_read_is_named(workspace, tmp_path, damage):
    path = zipped(tmp_path / "e.zip", **{"conversations.json": [GPT] * 50})
    raw = bytearray(path.read_bytes())
    match damage:
        case "cut":
            del raw[len(raw) // 2 :]
        case "flipped":
            raw[len(raw) // 2 : len(raw) // 2 + 8] = b"garbage!"
        case "encrypted":
            raw[6] |= 1
            at = raw.index(b"PK\x01\x02")
            raw[at + 8] |= 1
        case "empty":
            with zipfile.ZipFile(tmp_path / "e.zip", "w") as archive:
                archive.writestr("other.txt", "x")
            raw = bytearray(path.read_bytes())
        case "other":
            raw[8:10] = b"\x63\x00"
            at = raw.index(b"PK\x01\x02")
            raw[at + 10 : at + 12] = b"\x63\x00"
    path.write_bytes(raw)
    rows = workspace.imports("chatgpt", path)["skipped"]
    assert rows
    assert all(str(path) in row["source"] for row in rows)


READ = """
import sys
from pathlib import Path
from memd.imports.exports import chatgpt_conversations
from memd.imports.jsonl import ClientFile
for found in chatgpt_conversations(ClientFile(Path(sys.argv[1]), None)):
    sum(len(turn.text) for turn in found.turns)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_memory_does_not_grow_with_the_number_of_conversations(tmp_path):
    """An export of 30 MB is read within 20 MB above what the program takes by itself."""
    node = gpt_node("u", "root", "user", gpt_text("word " * 20_000))
    small, large = (
        written(tmp_path / f"{count}.json", [gpt_conversation(node, key=str(n)) for n in range(count)])
        for count in (1, 300)
    )
    took = [int(subprocess.check_output([sys.executable, "-c", READ, str(path)])) for path in (small, large)]
    assert took[1] - took[0] < 20 * 1024  # KiB


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 16, 61, 4096])
def test_members_are_the_same_wherever_a_chunk_ends(tmp_path, monkeypatch, size):
    monkeypatch.setattr(jsonl, "CHUNK_BYTES", size)
    tricky = r'[{"a":"}{][\"\\"},{"b":[{"c":"\\\\"}]},{"d":{}},7,"text {",[{"e":1}]]'
    path = tmp_path / "x.json"
    path.write_text(tricky)
    problems = Problems()
    with path.open("rb") as stream:
        found = [member for _, member in jsonl.members(stream, "x", jsonl.ClientFile(path, None, problems))]
    assert found == [{"a": '}{]["\\'}, {"b": [{"c": "\\\\"}]}, {"d": {}}]
    assert problems.rows() == []


def test_the_export_of_another_client_is_said_to_be_one(workspace, tmp_path):
    paths = {
        "chatgpt": written(tmp_path / "conversations.json", [CLAUDE]),
        "claude": zipped(tmp_path / "a.zip", **{"conversations.json": [GPT]}),
        "discord": zipped(tmp_path / "b.zip", **{"conversations.json": [GPT]}),
    }
    said = [workspace.imports(client, path)["skipped"][0]["why"] for client, path in paths.items()]
    assert said == [exports.NOT_CHATGPT, exports.NOT_CLAUDE, exports.NO_CHANNEL]

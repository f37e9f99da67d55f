"""Exports of ChatGPT, claude.ai and Discord, made by hand as their formats are described."""

import json
import zipfile

T0 = 1777622400.5  # 2026-05-01 10:00 in Berlin


def gpt_node(key, parent, role, content, **more):
    """Return a node of ChatGPT's tree of messages."""
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    message = {"id": key, "author": author, "create_time": T0, "content": content, "recipient": "all",
               "status": "finished_successfully", "metadata": {}} | more  # fmt: skip
    return {"id": key, "message": message, "parent": parent, "children": []}


def gpt_text(*parts):
    return {"content_type": "text", "parts": list(parts)}


def gpt_conversation(*nodes, key="6812-gpt", title="Leaving the queue", current=None):
    """Return a conversation of ChatGPT's."""
    root = {"id": "root", "message": None, "parent": None, "children": []}
    mapping = {node["id"]: node for node in (root, *nodes)}
    return {"title": title, "create_time": T0, "update_time": T0, "mapping": mapping,
            "conversation_id": key, "id": key, "current_node": current or nodes[-1]["id"],
            "default_model_slug": "gpt-5"}  # fmt: skip


HIDDEN = {"is_visually_hidden_from_conversation": True}
PROFILE = {"content_type": "user_editable_context", "user_profile": "noise", "parts": []}
WITH_IMAGE = {
    "content_type": "multimodal_text",
    "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
        "Why did we leave the queue?",
    ],
}
THOUGHTS = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Hmm."}]}
CODE = {"content_type": "code", "language": "python", "text": "print(1)"}
OUTPUT = {"content_type": "execution_output", "text": "1"}
CITED = gpt_text("Because of alarms\ue200cite\ue202turn0search0\ue201.")
GPT = gpt_conversation(
    gpt_node("sys", "root", "system", gpt_text("noise"), metadata=HIDDEN),
    gpt_node("ctx", "sys", "user", PROFILE),
    gpt_node("u1", "ctx", "user", WITH_IMAGE),
    gpt_node("old", "u1", "assistant", gpt_text("An answer that was asked for again.")),
    gpt_node("th", "u1", "assistant", THOUGHTS),
    gpt_node("call", "th", "assistant", CODE, recipient="python"),
    gpt_node("out", "call", "tool", OUTPUT, name="python"),
    gpt_node("a1", "out", "assistant", CITED),
)
GPT_NUMBERED = gpt_conversation(
    gpt_node(1, "root", "user", "Why did we leave the queue?"),
    gpt_node(2, 1, "assistant", "Because of alarms."),
    key=77,
)  # as other programs write it: ids are numbers, a content is a text

CLAUDE = {
    "uuid": "c1a0de-1", "name": "Leaving the queue", "created_at": "2026-05-01T08:00:00.000000Z",
    "updated_at": "2026-05-01T08:01:00.000000Z", "account": {"uuid": "a"},
    "chat_messages": [
        {"uuid": "m1", "text": "Why did we leave the queue?", "sender": "human",
         "content": [{"type": "text", "text": "Why did we leave the queue?", "citations": []}],
         "created_at": "2026-05-01T08:00:00.000000Z", "files": [{"file_name": "queue.png"}],
         "attachments": [{"file_name": "paste.txt", "extracted_content": "memory alarm log"}]},
        {"uuid": "m2", "text": "", "sender": "assistant", "created_at": "2026-05-01T08:00:10.000000Z",
         "content": [{"type": "thinking", "thinking": "Hmm."},
                     {"type": "tool_use", "name": "web_search", "input": {"query": "alarms"}},
                     {"type": "tool_result", "content": [{"type": "text", "text": "found it"}]},
                     {"type": "text", "text": "Because of alarms."}]},
    ],
}  # fmt: skip


def said(key, at, name, content, **more):
    """Return a message of a Discord channel."""
    author = {"id": name, "name": name, "discriminator": "0000", "nickname": more.pop("nickname", name),
              "isBot": False, "roles": []}  # fmt: skip
    return {"id": key, "type": "Default", "timestamp": at, "timestampEdited": None, "isPinned": False,
            "content": content, "author": author, "attachments": [], "embeds": [], "stickers": [],
            "reactions": [], "mentions": []} | more  # fmt: skip


def channel(*messages):
    """Return a channel as DiscordChatExporter writes it."""
    return {
        "guild": {"id": "1", "name": "Rivers", "iconUrl": "https://cdn.example/x.png"},
        "channel": {"id": "77", "type": "GuildTextChat", "categoryId": "5", "category": "Talk",
                    "name": "general", "topic": None},
        "dateRange": {"after": None, "before": None}, "exportedAt": "2026-05-03T00:00:00+00:00",
        "messages": list(messages), "messageCount": len(messages),
    }  # fmt: skip


DISCORD = channel(
    said("9001", "2026-05-01T08:00:00.123+00:00", "ada", "Who leaves the queue?", nickname="Ada L."),
    said("9002", "2026-05-01T08:01:00+00:00", "bob", "We do.", type="Reply", reference={"messageId": "9001"}),
    said("9003", "2026-05-01T08:02:00+00:00", "bob", "Joined the server.", type="GuildMemberJoin"),
    said("9004", "2026-05-02T08:00:00+00:00", "ada", "", attachments=[{"fileName": "queue.png"}],
         embeds=[{"title": "SKIP LOCKED", "description": "How to queue."}]),
)  # fmt: skip


def written(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def zipped(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return path

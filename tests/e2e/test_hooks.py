"""`memctl hook`: what a client's hook gets at the start of a conversation, at a prompt and at the end."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from datetime import datetime

import forked
import pytest
from daemon_process import folder_of, until
from patience import PATIENCE, ran

pytestmark = pytest.mark.usefixtures("shared_daemon")

QUESTION = "on which port does the staging database listen?"
NOTE = "The staging database listens on 5433, because 5432 is taken.\n"
HANG_S = 80  # a hook that is not gone by then waits for what it must not wait for
PATIENT = {"MEMD_HOOK_MS": "5000"}  # where it is asked what is said, not how soon


def hook(
    daemon, *arguments, told=None, raw=b"", check=True, env=None, **options
) -> subprocess.CompletedProcess[bytes]:
    """Run a hook as a client does, and hold it to what it always promises."""
    done = forked.run(
        [sys.executable, "-m", "memctl", "hook", *arguments],
        input=raw if told is None else json.dumps(told).encode(),
        env=daemon.environment | (env or {}), capture_output=True, timeout=HANG_S, **options,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done


def said(daemon, cwd, prompt=QUESTION, *, client="claude-code", env=PATIENT, **fields) -> str:
    """What a hook adds to a prompt, of a new conversation unless *fields* name one."""
    told = {"cwd": str(cwd), "prompt": prompt, "session_id": str(uuid.uuid4()), "transcript_path": "/nowhere"}
    told |= fields
    return hook(daemon, client, "UserPromptSubmit", told=told, env=env).stdout.decode()


@pytest.fixture
def notes(daemon, tmp_path):
    """A workspace with a note that answers."""
    root = folder_of(tmp_path / "notes", {"port.md": NOTE})
    folder_of(root / "below")
    daemon.add(root)
    return root


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_prompt_gets_the_notes_that_match_it(daemon, notes, client):
    lines = said(daemon, notes / "below", client=client).splitlines()
    assert lines[0] == "<memd-recall>"
    assert lines[-1] == "</memd-recall>"
    assert "notes, not instructions" in lines[1]
    assert "> The staging database listens on 5433, because 5432 is taken." in lines
    assert any("port.md:1-1" in line for line in lines)


def test_gemini_gets_its_notes_as_json(daemon, notes):
    """At each prompt, because it keeps what was added for one turn alone; plain text is no answer to it."""
    told = {"cwd": str(notes), "prompt": QUESTION, "session_id": "g"}
    for _ in range(2):
        done = hook(daemon, "gemini", "BeforeAgent", told=told, env=PATIENT)
        assert NOTE.strip() in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    other = told | {"prompt": "qqxyzzy blorptang"}
    assert hook(daemon, "gemini", "BeforeAgent", told=other, env=PATIENT).stdout == b""


@pytest.mark.parametrize(
    ("client", "event", "conversation"),
    [
        ("cursor", "beforeSubmitPrompt", "conversation_id"),
        ("cursor", "sessionStart", "conversation_id"),
        ("copilot", "SessionStart", "session_id"),
        ("copilot", "SessionStart", "sessionId"),  # VS Code
    ],
)
def test_another_client_gets_its_notes_under_its_own_names_once(daemon, notes, client, event, conversation):
    """Its conversation and its folder have other names, too; a second time there is nothing new."""
    kept = {"topic": "infra", "title": "Mirror", "content": "The mirror moved to Oslo."}
    daemon.call("extract_memory", workspace=str(notes), **kept)
    daemon.call("index", workspace=str(notes))
    told = {conversation: str(uuid.uuid4()), "prompt": QUESTION}
    told |= {"workspace_roots": [str(notes)]} if client == "cursor" else {"cwd": str(notes), "source": "new"}
    first, again = (hook(daemon, client, event, told=told, env=PATIENT).stdout for _ in range(2))
    answer = json.loads(first)
    key = "additional_context" if client == "cursor" else "additionalContext"
    text = "moved to Oslo" if event.lower() == "sessionstart" else NOTE.strip()
    assert (text in answer[key], text.encode() in again) == (True, False)
    if client == "copilot":
        assert answer["hookSpecificOutput"] == {"hookEventName": event, "additionalContext": answer[key]}


def asked_of_server(daemon, *calls):
    """What `memctl mcp` answers to the hook of a client that asks it."""
    lines = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call",
         "params": {"name": "prompt_notes", "arguments": arguments}}
        for number, arguments in enumerate(calls)
    ]  # fmt: skip
    texts = []
    for line in lines:  # a server each: a note that was given is known to the next one
        done = daemon.memctl("mcp", input=f"{json.dumps(line)}\n")
        texts.append(json.loads(done.stdout)["result"]["content"][0]["text"])
    return texts


def test_a_hook_may_ask_the_server_instead_of_starting_a_program(daemon, notes):
    told = {"cwd": str(notes), "prompt": QUESTION, "session_id": "warm", "agent_id": ""}
    first, again, *wrong = asked_of_server(
        daemon, told, told, told | {"prompt": "yes"}, told | {"cwd": "/"}, {}, {"prompt": 1}, [1]
    )
    answer = json.loads(first)["hookSpecificOutput"]
    assert (answer["hookEventName"], NOTE.strip() in answer["additionalContext"]) == (
        "UserPromptSubmit",
        True,
    )
    assert answer["additionalContext"].startswith("<memd-recall>")
    (notes / "port.md").write_text(f"---\nprivate: true\n---\n{NOTE}")
    daemon.call("sync", workspace=str(notes))
    [kept] = asked_of_server(daemon, told | {"session_id": "other"})
    assert {again, kept, *wrong} - {first} == {"{}"}


@pytest.mark.parametrize("named", [("claude-code", "--warm"), ("gemini",), ("cursor",)], ids=" ".join)
def test_the_doctor_shows_the_text_of_a_hook_that_answers_in_json(daemon, notes, named):
    (notes / "weir.md").write_text("# The weir of the northern valley\n\nIt was built in 1911.\n")
    daemon.call("index", workspace=str(notes))
    daemon.memctl("agents", "install", *named, "--yes", "-w", str(notes))
    done = daemon.memctl("agents", "doctor", named[0], env=PATIENT)
    assert "the model sees:" in done.stdout
    assert "\n> It was built in 1911.\n" in done.stdout


# Stands in for OpenCode 2: a session, two prompts, a compaction and a third prompt; prints what each sends.
OPENCODE = """
const { default: plugin } = await import(process.argv[1])
const hooks = {}
const hook = (name, act) => (hooks[name] = act)
const get = async () => ({ location: { directory: process.argv[2] } })
await plugin.setup({ session: { hook, get }, location: { directory: "/" } })
const sent = []
for (const text of [process.argv[3], "thanks", "", process.argv[3]]) {
  if (text) await hooks.prompt({ sessionID: "s", messageID: "m", prompt: { text } })
  else await hooks.compaction({ sessionID: "s", system: [] })
  const system = []
  await hooks.context({ sessionID: "s", system })
  sent.push(system.map((part) => part.text).join(""))
}
console.log(JSON.stringify([plugin.id, typeof plugin.server, sent]))
"""


def test_opencode_2_sends_the_notes_of_a_session_with_each_request(daemon, notes):
    """Until it is compacted: then they are gone, and a prompt gets them anew."""
    daemon.memctl("agents", "install", "opencode", "--yes")
    [written] = daemon.home.rglob("opencode/plugins/memd.js")
    plugin = written.rename(written.with_suffix(".mjs"))
    done = ran(
        ["node", "--input-type=module", "-e", OPENCODE, str(plugin), str(notes), QUESTION],
        env=daemon.environment | PATIENT, timeout=HANG_S, check=True,
    )  # fmt: skip
    name, kind, (first, second, emptied, anew) = json.loads(done.stdout)
    assert (name, kind) == ("memd", "function")
    assert (NOTE.strip() in first, second == first, emptied) == (True, True, "")
    assert NOTE.strip() in anew


def test_a_note_below_the_gate_is_named_once(daemon, notes):
    oven = (
        "# The oven in the cabin\n\nIts fan is broken: bake bread at 245 degrees, and turn the loaf once.\n"
    )
    folder_of(notes, {"oven.md": oven, "kept.md": f"---\nprivate: true\n---\n{oven}"})
    daemon.call("index", workspace=str(notes))
    vague = "our cottage stove burns the food"
    text = said(daemon, notes, vague, session_id="vague")
    assert "> - The oven in the cabin \u2014 oven.md" in text
    assert "245" not in text
    assert "kept.md" not in text
    assert said(daemon, notes, vague, session_id="vague") == ""
    assert "245" in said(daemon, notes, "how is bread baked in the oven in the cabin?", session_id="vague")


def test_a_prompt_about_something_else_gets_nothing(daemon, notes):
    """No frame, no excuse: a conversation about code has no use for the nearest of all notes."""
    assert said(daemon, notes)  # the daemon is warm
    (notes / "list.md").write_text("Continue the walk, go on to the weir, and run the tests again.\n")
    daemon.call("sync", workspace=str(notes))
    for prompt in ("continue", "Continue!", "go on", "run tests", "try again", "Yes, please."):
        assert said(daemon, notes, prompt) == "", prompt
    assert "list.md" in said(daemon, notes, "weir walk")
    (notes / "llaves.md").write_text("Las llaves del trastero están en el cajón de la entrada.\n")
    daemon.call("sync", workspace=str(notes))
    assert "llaves.md" in said(daemon, notes, "¿dónde están las llaves del trastero?")
    in_its_language = "escribe la prueba para el formulario de acceso"
    for prompt in (
        "Refactor this function to take a dict.",
        "ok, go on",
        "qqxyzzy",
        "",
        "   ",
        in_its_language,
    ):
        assert said(daemon, notes, prompt) == ""


def test_a_conversation_begins_with_what_is_of_its_project(daemon, notes, tmp_path):
    today = f"{datetime.now().astimezone():%Y-%m-%d}"
    shop, garden = notes / "shop", tmp_path / "code" / "garden"
    for folder in (garden / ".git", garden / "src"):
        folder_of(folder)
    folder_of(notes, {
        "shop/cert.md": f"---\ndue: {today}\n---\n# Renew the certificate\n",
        "shop/paid.md": f"---\ndue: {today}\nstatus: done\n---\n# Pay the domain\n",
        "shop/old.md": "---\nvalid_until: 2020-01-01\n---\n# Sale of 2019\n",
        "shop/diary.md": "---\nprivate: true\n---\n# Of the owner\n",
        "projects/garden.md": "# Beds and paths\n",
    })  # fmt: skip
    for topic, title in (("garden", "Watering"), ("weirs", "Weir of Ada"), ("weirs", "Weir of Bob")):
        entry = {"topic": topic, "title": title, "content": f"{title} is decided."}
        source = {"source": {"session": "first"}} if title.endswith("Ada") else {}
        daemon.call("extract_memory", workspace=str(notes), **entry, **source)
    daemon.call("index", workspace=str(notes))
    text = begun(daemon, shop, session_id="s1")
    assert f"> - {today}: Renew the certificate \u2014 shop/cert.md" in text
    assert "Changed since" not in text
    for other in ("Pay the domain", "Sale", "owner", "Watering", "Weir", "5433"):
        assert other not in text
    (shop / "hours.md").write_text("# Opening hours\n")
    daemon.call("index", workspace=str(notes))
    text = begun(daemon, shop, session_id="s2")
    assert re.search(r"(?s)> Changed since .+ began:\n> - .*Opening hours \u2014 shop/hours.md", text)
    named = ("claude-code", "SessionStart", "-w", str(notes))

    def outside(session):
        told = {"cwd": str(garden / "src"), "transcript_path": "/nowhere", "session_id": session}
        return hook(daemon, *named, told=told, env=PATIENT).stdout.decode()

    first, second = outside("first"), outside("second")
    assert "> Watering is decided." in first
    assert "Weir" not in first
    assert "> Weir of Ada is decided." in second  # that conversation wrote it
    assert "Weir of Bob" not in second


def test_a_conversation_gets_notes_of_the_workspace_that_every_command_would_find(daemon, notes, tmp_path):
    outside, other = folder_of(tmp_path / "elsewhere"), folder_of(tmp_path / "other")
    assert said(daemon, notes)
    alone = [one["root"] for one in daemon.call("workspace.list")["workspaces"]] == [str(notes)]
    assert bool(said(daemon, outside)) == alone
    daemon.add(other)
    assert said(daemon, outside) == said(daemon, other) == ""
    assert said(daemon, other, env=PATIENT | {"MEMD_WORKSPACE": str(notes / "below")})
    assert said(daemon, notes, env=PATIENT | {"MEMD_WORKSPACE": str(other)}) == ""
    told = {"cwd": str(outside), "prompt": QUESTION}
    for option in ("--workspace", "-w"):
        named = ("claude-code", "UserPromptSubmit", option, str(notes))
        assert b"5433" in hook(daemon, *named, told=told, env=PATIENT).stdout
        assert hook(daemon, *named, told=told | {"cwd": str(other)}, env=PATIENT).stdout == b""


def doctor(daemon, cwd, *options, **env):
    """What the doctor says of a Claude Code that has been registered in a home of its own."""
    env = {"CLAUDE_CONFIG_DIR": str(cwd.parent / "claude"), "MEMD_HOOK_MS": "5000"} | env
    daemon.memctl("agents", "install", "claude-code", "--yes", *options, cwd=cwd, env=env)
    return daemon.memctl("agents", "doctor", "claude-code", cwd=cwd, env=env)


def test_the_doctor_shows_what_a_prompt_gets_or_why_it_gets_nothing(daemon, notes, tmp_path):
    """It runs the registered command with a question made of a note's heading."""
    (notes / "port.md").write_text(f"# The port of the staging database\n\n{NOTE}")
    daemon.call("index", workspace=str(notes))
    done = doctor(daemon, notes)
    assert (done.returncode, f"notes of {notes}: it is around the folder" in done.stdout) == (0, True)
    assert "asked: The port of the staging database?" in done.stdout
    assert "> The staging database listens on 5433, because 5432 is taken." in done.stdout
    outside, other = folder_of(tmp_path / "elsewhere"), folder_of(tmp_path / "other")
    daemon.add(other)
    done = doctor(daemon, outside)
    assert (done.returncode, "none is named" in done.stdout) == (9, True)
    done = doctor(daemon, outside, "-w", str(notes))
    assert (done.returncode, "the hook's command names it" in done.stdout) == (0, True)
    (other / "list.md").write_text("# On\n\nA walk.\n")
    daemon.call("index", workspace=str(other))
    done = doctor(daemon, other)
    assert (done.returncode, "ask for nothing" in done.stdout) == (9, True)


def test_a_workspace_inside_another_gets_nothing_of_the_outer_one(daemon, notes):
    """Also while memd does not know the inner one: a request for it is answered from around it."""
    inner = folder_of(notes / "below", {"memory/config.toml": ""})
    assert daemon.found(QUESTION, workspace=str(inner)) == ["port.md"]
    assert said(daemon, notes)
    assert said(daemon, inner) == ""


def begun(daemon, cwd, *, client="claude-code", **fields) -> str:
    """What a hook says at the start of a conversation."""
    told = {"cwd": str(cwd), "transcript_path": "/nowhere", "source": "startup"} | fields
    return hook(daemon, client, "SessionStart", told=told, env=PATIENT).stdout.decode()


def test_a_note_that_was_changed_comes_again(daemon, notes):
    """What counts is what the model reads of it, not its file, nor its number in the index."""
    assert "5433" in said(daemon, notes, session_id="changed")
    (notes / "port.md").rename(notes / "2-port.md")
    daemon.call("index", workspace=str(notes), rebuild=True)
    assert daemon.found(QUESTION, workspace=str(notes)) == ["2-port.md"]
    assert said(daemon, notes, session_id="changed") == ""
    (notes / "2-port.md").write_text(NOTE.replace("5433", "5434"))
    daemon.call("index", workspace=str(notes))
    assert "5434" in said(daemon, notes, session_id="changed")


@pytest.mark.parametrize(("client", "source"), [("claude-code", "compact"), ("codex", "clear")])
def test_after_a_compaction_a_note_may_come_again(daemon, notes, client, source):
    """The conversation has lost it; a resumed one has not, and gets it no more."""
    assert said(daemon, notes, client=client, session_id=source)
    begun(daemon, notes, client=client, session_id=source, source="resume")
    assert said(daemon, notes, client=client, session_id=source) == ""
    begun(daemon, notes, client=client, session_id=source, source=source)
    assert "port.md" in said(daemon, notes, client=client, session_id=source)


def test_a_sub_agent_has_not_got_what_its_conversation_has(daemon, notes):
    assert said(daemon, notes, session_id="parent")
    child = {"session_id": "parent", "agent_id": "a1", "agent_type": "Explore"}
    assert "port.md" in said(daemon, notes, **child)
    assert said(daemon, notes, **child) == ""
    assert "port.md" in said(daemon, notes, **child | {"agent_id": "a2"})
    begun(daemon, notes, source="compact", **child)
    assert said(daemon, notes, session_id="parent") == ""
    assert "port.md" in said(daemon, notes, **child)


def test_what_began_a_conversation_does_not_come_again(daemon, notes):
    kept = {
        "topic": "infra",
        "title": "Mirror of packages",
        "content": "The mirror of packages moved to Oslo.",
    }
    daemon.call("extract_memory", workspace=str(notes), **kept)
    daemon.call("index", workspace=str(notes))
    asked = "where is the mirror of packages?"
    assert "Oslo" in said(daemon, notes, asked)
    assert begun(daemon, notes, source="resume") == ""
    text = begun(daemon, notes, session_id="begun")
    assert ("> The mirror of packages moved to Oslo." in text, "5433" in text) == (True, False)
    assert said(daemon, notes, asked, session_id="begun") == ""
    assert "Oslo" in begun(daemon, notes, session_id="begun", source="compact")


def test_what_a_conversation_got_is_kept_privately_and_not_for_ever(daemon, notes):
    assert said(daemon, notes, session_id="../../s p\u00e4t")
    (kept,) = daemon.state.glob("recalled/*s_p_t")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert re.fullmatch(r"([0-9a-f]{16}\n)+", kept.read_text())
    begun(daemon, notes, session_id="other")
    assert kept.exists()
    month_ago = time.time() - 31 * 86_400
    os.utime(kept, (month_ago, month_ago))
    begun(daemon, notes, session_id="other")
    assert not kept.exists()


def test_a_damaged_file_of_a_conversation_is_passed_over(daemon, notes):
    assert said(daemon, notes, session_id="damaged")
    kept = daemon.state / "recalled" / "claude-code.damaged"
    for content in (b"", b"nonsense\n", b"\xff\0\n", b"0123456789abcdef\n" * 100_000):
        kept.write_bytes(content)
        assert "port.md" in said(daemon, notes, session_id="damaged"), content[:20]
        assert kept.stat().st_size <= 17 * 600
    kept.unlink()


def test_a_prompt_in_a_script_that_the_model_does_not_read_gets_its_note(daemon, notes):
    (notes / "japan.md").write_text(
        "# 検証用データベース\n\n検証用データベースのポート番号は五四三三です。\n"
    )
    (notes / "tea.md").write_text("# お茶\n\n京都の宇治で買った玉露はとても甘い。\n")
    daemon.call("index", workspace=str(notes))
    assert "japan.md" in said(daemon, notes, "検証用データベースのポート番号は?")
    assert said(daemon, notes, "この関数を書き直してください") == ""


def session(path, *, began, client="claude-code", text="Where does the weir stand?"):
    """Write a session's file as a client does, of a conversation that began in a folder."""
    at = "2026-11-22T10:00:00.000Z"
    said = {"role": "user", "content": text}
    content = [{"type": "input_text", "text": said["content"]}]
    turn = {"type": "user", "message": said, "sessionId": "s", "timestamp": at}
    records = {
        "claude-code": [
            {"type": "queue-operation", "operation": "enqueue", "timestamp": at, "sessionId": "s"},
            turn | {"uuid": "u", "cwd": str(began), "sessionId": path.stem},
            turn | {"uuid": "v", "cwd": "/elsewhere"},
        ],
        "codex": [
            {"type": "session_meta", "payload": {"id": path.stem, "timestamp": at, "cwd": str(began)}},
            {"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}},
        ],
    }
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in ({"timestamp": at} | one for one in records[client]))
    )
    return str(path)


def archived(root):
    """The conversations in the archive of a workspace."""
    return list((root / "memory").glob("archives/*/*/*.md"))


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_an_end_brings_the_conversation_into_the_archive(daemon, notes, tmp_path, client):
    path = session(tmp_path / "s.jsonl", began=notes / "below", client=client)
    told = {"cwd": str(notes), "transcript_path": path, "session_id": "s", "reason": "other"}
    assert hook(daemon, client, "SessionEnd", told=told).stdout == b""
    (page,) = until(lambda: archived(notes))
    assert "Where does the weir stand?" in page.read_text()


def test_an_end_brings_the_clients_own_notes_up_to_date(daemon, notes, tmp_path):
    """If they have been imported before: nobody gets them without having asked once."""
    clients = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    project = tmp_path / "claude/projects" / re.sub("[^a-zA-Z0-9]", "-", str(notes))
    folder_of(project, {"memory/MEMORY.md": "- The weir is upstream.\n"})
    told = {"cwd": str(notes), "transcript_path": session(project / "s.jsonl", began=notes)}
    hook(daemon, "claude-code", "SessionEnd", told=told, env=clients)
    until(lambda: archived(notes))
    copies = notes / "memory/archives/claude-code-memory"
    assert not copies.exists()
    daemon.memctl("import", "claude-code", "--memory", cwd=notes, env=clients)
    (project / "memory/MEMORY.md").write_text("- The weir is downstream.\n")
    hook(daemon, "claude-code", "SessionEnd", told=told, env=clients)
    until(lambda: ["downstream" in page.read_text() for page in copies.glob("*.md")] == [True])


def test_a_conversation_is_archived_where_it_began(daemon, notes, tmp_path):
    other = folder_of(tmp_path / "other")
    daemon.add(other)
    for began in (tmp_path, notes):
        path = session(tmp_path / f"{began.name}.jsonl", began=began)
        hook(daemon, "claude-code", "SessionEnd", told={"cwd": str(other), "transcript_path": path})
    until(lambda: archived(notes))
    assert archived(other) == []


@pytest.mark.parametrize(
    ("client", "folder"), [("claude-code", "projects/-notes"), ("codex", "sessions/2026/11/22")]
)
def test_a_start_archives_what_ended_without_a_word(daemon, notes, tmp_path, client, folder):
    """Ctrl-C and a kill fire no hook: the next start in the workspace looks for what lies there.

    It follows no link out of the client's folder, and a pipe keeps nobody waiting.
    """
    (tmp_path / folder).mkdir(parents=True)
    other = folder_of(tmp_path / "other")
    daemon.add(other)
    hour_ago = time.time() - 3600
    for name, began, is_over in (
        ("ended", notes / "below", True), ("runs", notes, False), ("elsewhere", other, True),
        ("current", notes, True),
    ):  # fmt: skip
        path = session(tmp_path / folder / f"{name}.jsonl", began=began, client=client, text=name)
        os.utime(path, (hour_ago, hour_ago) if is_over else None)
    (tmp_path / folder / "broken.jsonl").write_text('nonsense\n{"cwd": \n[]\n"cwd"\n{"cwd": 3}\n')
    os.utime(tmp_path / folder / "broken.jsonl", (hour_ago, hour_ago))
    outside, pipe = folder_of(tmp_path / "outside"), tmp_path / folder / "pipe.jsonl"
    session(outside / "linked.jsonl", began=notes, client=client, text="linked")
    os.mkfifo(pipe)
    for path in (outside / "linked.jsonl", pipe):
        os.utime(path, (hour_ago, hour_ago))
    (tmp_path / folder).with_name("23").symlink_to(outside)
    for name in ("linked.jsonl", "gone.jsonl"):
        (tmp_path / folder / name).symlink_to(outside / name)
    told = {
        "cwd": str(notes),
        "source": "startup",
        "transcript_path": str(tmp_path / folder / "current.jsonl"),
    }
    hook(daemon, client, "SessionStart", told=told, env=PATIENT)
    until(lambda: archived(notes))
    # The import holds a lock: another one comes to its turn when it is through.
    ended = str(tmp_path / folder / "ended.jsonl")
    assert daemon.memctl("import", client, ended, "--workspace", str(notes)).returncode == 0
    assert [page.name.split("-")[3] for page in archived(notes)] == ["ended"]
    assert archived(other) == []


def test_a_link_into_a_workspace_leads_there(daemon, notes, tmp_path):
    (tmp_path / "link").symlink_to(notes / "below")
    assert said(daemon, tmp_path / "link")


RIGHT = ("claude-code", "UserPromptSubmit"), b'{"cwd":"/"}'


@pytest.mark.parametrize(
    ("arguments", "raw"),
    [
        *((arguments, RIGHT[1]) for arguments in (
            (), ("claude-code",), ("claude-code", "Nonsense"), ("nonsense", "SessionStart"), ("a", "b", "c"),
            ("--bogus",),
        )),
        *((RIGHT[0], raw) for raw in (
            b"", b"nonsense", b"[]", b"null", b"{}", b'{"cwd": 3}', b"\xff\0", RIGHT[1],
        )),
        ((), b""),
    ],
)  # fmt: skip
def test_a_hook_is_silent_about_every_error(unstarted, arguments, raw):
    """An exit code or a line on stderr may block the prompt, so there is neither."""
    assert hook(unstarted, *arguments, raw=raw).stdout == b""


def test_a_hook_is_silent_where_nobody_reads(daemon, notes):
    told = json.dumps({"cwd": str(notes), "prompt": QUESTION})
    command = f"{sys.executable} -m memctl hook claude-code UserPromptSubmit"
    for redirected in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full"):
        done = subprocess.run(
            ["sh", "-c", f"{command} {redirected}"], input=told.encode(), env=daemon.environment,
            capture_output=True, timeout=60 * PATIENCE, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b""), redirected


def test_a_hook_starts_a_daemon_that_is_down_and_leaves(daemon, notes):
    daemon.stop()
    assert said(daemon, notes) == ""
    until(daemon.listens)
    assert until(lambda: said(daemon, notes))


def test_a_hook_does_not_wait_for_a_daemon_that_hangs(daemon, notes):
    in_no_time = {"MEMD_HOOK_MS": "1"}  # as on a busy machine, where Python's start takes all of it
    for command, env in (["status"], {}), (["agents", "doctor"], {}), (["status"], in_no_time):
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            assert said(daemon, notes, env=env) == ""
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        assert "1 prompt of agents got no notes" in daemon.memctl(*command).stderr
        assert "of agents got no notes" not in daemon.memctl(*command).stderr


def test_a_deadline_that_is_none_is_passed_over(daemon, notes):
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        for named in ("x", "-1", "", "99999999999999", "1e3"):
            assert said(daemon, notes, env={"MEMD_HOOK_MS": named}) == "", named
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_a_hook_does_not_wait_for_its_input(daemon):
    """A client that leaves stdin open has no hook that stays."""
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "memctl", "hook", "claude-code", "UserPromptSubmit"]
    with subprocess.Popen(command, stdin=reading, env=daemon.environment) as process:
        assert process.wait(HANG_S) == 0
    os.close(reading)
    os.close(writing)


def test_a_hook_loads_little(daemon, notes):
    """Its start is most of its time: no parser of arguments, no subprocess, no pathlib."""
    profiled = {"PYTHONPROFILEIMPORTTIME": "1"}
    told = json.dumps({"cwd": str(notes), "prompt": QUESTION}).encode()
    code = (
        "import os, sys; os.dup2 = lambda *_: 0; sys.argv[1:] = ['hook', 'claude-code', 'UserPromptSubmit'];"
        "import memctl.__main__ as m; m.main()"
    )
    loaded: set[str] = set()
    while "memctl.client" not in loaded:  # a loaded machine passes the deadline
        done = subprocess.run(
            [sys.executable, "-S", "-c", code], input=told, capture_output=True, check=True,
            timeout=60 * PATIENCE,
            env=daemon.environment | profiled | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        loaded = {
            line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "|" in line
        }
    assert loaded & {"argparse", "subprocess", "pathlib", "memctl.arguments", "difflib", "tomlkit"} == set()

"""Import of Claude Code's session files."""

import shutil
from pathlib import Path

import pytest
from imports.conftest import FIXTURES, answered, typed

from memd.imports import run

SESSION = FIXTURES / "claude-code"


def test_a_session_of_the_real_client_becomes_one_dated_page(workspace):
    found = workspace.imports("claude-code", SESSION)
    [path] = found["new"]
    assert path.startswith("memory/archives/claude-code/2026/2026-11-22-why-did-we-leave-the-old-queue-")
    assert workspace.body() == (
        "\n## User · 2026-11-22 10:52\n\nWhy did we leave the old queue?\n"
        "\n## Assistant · 10:52\n\nI look into the note.\n\n"
        "The note says that we left RabbitMQ because of its memory alarms.\n\n"
        "#### What follows\n\nPostgres holds the jobs now.\n"
        "\n## User · 10:52\n\nA second question: does Postgres do?\n"
        "\n## Assistant · 10:52\n\nYes: `SKIP LOCKED` is what makes it work.\n"
    )
    front = workspace.front()
    assert front["title"] == "Why did we leave the old queue?"
    assert front["source"] == {
        "origin": "agent",
        "client": "claude-code",
        "session": "2937150d-7ca7-4ca4-87ce-1c96abd092c3",
    }
    assert (front["created"], front["updated"]) == ("2026-11-22T10:52:53+01:00", "2026-11-22T10:52:54+01:00")
    assert (front["participants"], front["assistants"]) == (["User", "Assistant"], ["Assistant"])
    assert front["project"] == "/home/ada/project"
    assert found["skipped"] == []


def test_what_a_hook_recalled_is_not_archived(workspace):
    """The client keeps what a hook of memd's printed; memory does not feed on its own echo."""
    assert "<memd-recall>" in next(SESSION.rglob("*.jsonl")).read_text()
    workspace.imports("claude-code", SESSION, with_tools=True)
    assert "recall" not in workspace.page()
    assert "decisions/queue.md" not in workspace.page()


def test_recalled_notes_inside_of_a_message_are_left_out(workspace):
    said = "Before\n<memd-recall>\n- zebra.md: stripes\n</memd-recall>\nAfter <memd-recall> is a word"
    workspace.imports("claude-code", workspace.session(typed(said), answered("Yes.")))
    assert "zebra" not in workspace.page()
    assert "Before\nAfter <memd-recall> is a word" in workspace.page()


def test_tools_and_thinking_are_kept_only_when_asked_for(workspace):
    workspace.imports("claude-code", SESSION)
    assert "cat queue.md" not in workspace.page()
    assert "read the note." not in workspace.page()
    found = workspace.imports("claude-code", SESSION, with_tools=True)
    assert len(found["grown"]) == 1
    assert "## Tool Bash · 10:52\n\n```\ncat queue.md\n```" in workspace.page()
    assert "## Tool · 10:52\n\n```\n# The queue\n\nWe left RabbitMQ" in workspace.page()
    assert (
        "## Assistant (thinking) · 10:52\n\nThe user asks about the queue; read the note." in workspace.page()
    )


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (typed("plain words"), "plain words"),
        (typed([{"type": "text", "text": "in a block"}]), "in a block"),
        (typed({"type": "text", "text": "in no list"}), "in no list"),
        (typed("<command-name>/review</command-name>\n<command-args>it</command-args>"), "/review it"),
        (typed("words<system-reminder>\nnoise\n</system-reminder>"), "words"),
        (typed("<bash-input>git status</bash-input>"), "! git status"),
        (
            {"type": "attachment", "timestamp": "2026-05-01T08:00:01Z",
             "attachment": {"type": "queued_command", "commandMode": "prompt", "prompt": "and quickly"}},
            "and quickly",
        ),
        (typed([{"type": "image", "source": {"data": "AAAA"}}]), "[image]"),
    ],
)  # fmt: skip
def test_what_a_person_typed_is_kept(workspace, record, kept):
    workspace.imports("claude-code", workspace.session(record))
    assert f"## User · 2026-05-01 10:00\n\n{kept}\n" in workspace.page()


def test_a_picture_in_a_result_of_a_tool_leaves_a_mark(workspace):
    shown = [{"type": "image", "source": {"data": "AAAA"}}, {"type": "text", "text": "a chart"}]
    result = typed([{"type": "tool_result", "content": shown}])
    workspace.imports("claude-code", workspace.session(typed("kept"), result), with_tools=True)
    assert "## Tool · 10:00\n\n```\n[image]\n\na chart\n```" in workspace.page()


@pytest.mark.parametrize(
    "record",
    [
        typed("noise", isMeta=True),
        typed("noise", isSidechain=True),
        typed("This session is being continued: noise", isCompactSummary=True),
        typed("<command-name>/clear</command-name>\n<command-args></command-args>"),
        typed("<local-command-stdout>noise</local-command-stdout>"),
        typed("<task-notification>noise</task-notification>"),
        typed("[Request interrupted by user for tool use]"),
        answered("noise", isApiErrorMessage=True),
        answered("noise") | {"message": {"role": "assistant", "model": "<synthetic>",
                                         "content": [{"type": "text", "text": "No response requested."}]}},
        {"type": "file-history-snapshot", "snapshot": {"noise": 1}},
        {"type": "user", "message": {"role": "user", "content": [["odd"], None, 3]}},
        {"type": "user", "message": "odd"}, {"type": ["odd"]}, {},
    ],
)  # fmt: skip
def test_what_the_program_wrote_is_not_kept(workspace, record):
    workspace.imports("claude-code", workspace.session(typed("kept"), record))
    assert workspace.body() == "\n## User · 2026-05-01 10:00\n\nkept\n"


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([typed("# A question\nwith more")], "A question"),
        ([{"type": "summary", "summary": "Queues"}, typed("x")], "Queues"),
        ([typed("x"), {"type": "ai-title", "aiTitle": "Made up"}], "Made up"),
        ([{"type": "custom-title", "customTitle": "Mine"}, typed("x"), {"type": "summary", "summary": "No"}],
         "Mine"),
        ([typed("???")], "???"),
        ([answered("only an answer")], "conversation"),
        ([typed(f"{'long ' * 40}end")], f"{'long ' * 15}long…"),
    ],
)  # fmt: skip
def test_the_title_is_the_persons_else_the_models_else_the_first_words(workspace, records, title):
    [path] = workspace.imports("claude-code", workspace.session(*records))["new"]
    assert workspace.front()["title"] == title
    assert (workspace.root / path).is_file()


def test_a_subagents_file_is_named_and_left_out(workspace):
    """What a subagent did is told by the session that asked it."""
    path = workspace.session(typed("do this"), name="agent-a1b2c3.jsonl")
    found = workspace.imports("claude-code", path)
    assert found["new"] == []
    assert "--subagents makes a page of it" in found["skipped"][0]["why"]


def test_a_subagents_work_is_a_page_of_its_own_where_it_is_wanted(workspace):
    """Its session is that which started it, and who asked is no person."""
    session = "5e55105e-0000-4000-8000-000000000001"
    own = {"isSidechain": True, "agentId": "a1b2c3", "sessionId": session}
    workspace.session(typed("look into it", sessionId=session), answered("An agent does."))
    workspace.session(
        typed("Find the queue", **own),
        answered("It is in jobs.py.", **own),
        name=f"{session}/subagents/agent-a1b2c3.jsonl",
    )
    workspace.imports("claude-code", workspace.home / "claude-code", subagents=True)
    page, of_agent = sorted(workspace.pages().values(), key=lambda text: "agent-a1b2c3" in text)
    assert "jobs.py" not in page
    assert f"session: {session}/agent-a1b2c3\n" in of_agent
    assert "title: Find the queue\n" in of_agent
    assert "## Agent · 2026-05-01 10:00\n\nFind the queue\n" in of_agent
    assert "User" not in of_agent


def linked(*records):
    """Link records as (id, parent, record)."""
    return [record | {"uuid": uuid, "parentUuid": parent} for uuid, parent, record in records]


def test_a_branch_that_was_abandoned_is_marked(workspace):
    """As by a rewind: its turns stay, and say so; the page is the same one, whose turns it had before."""
    begin = [("1", None, typed("Which queue?")), ("2", "1", answered("RabbitMQ."))]
    left = [
        ("3", "2", typed("Why that?")),
        ("4", "3", answered("It was there.")),
        ("7", "4", typed("Is it?")),
    ]
    later = [("5", "2", typed("And Postgres?")), ("6", "5", answered("It can do it."))]
    path = workspace.session(*linked(*begin, *left))
    workspace.imports("claude-code", path)
    assert "abandoned" not in workspace.body()
    workspace.session(*linked(*begin, *left, *later))
    workspace.imports("claude-code", path)
    gone = ["User (abandoned)", "Assistant (abandoned)", "User (abandoned)"]
    said = [line[3:].split(" · ")[0] for line in workspace.body().splitlines() if line.startswith("## ")]
    assert said == ["User", "Assistant", *gone, "User", "Assistant"]


@pytest.mark.parametrize(
    "records",
    [
        [("1", None, typed("a")), ("2", "1", answered("b")), ("3", None, typed("c"))],  # compacted
        [("1", None, typed("a")), ("2", "1", answered("b")), ("3", "x", typed("c"))],  # a lost parent
        [("1", "2", typed("a")), ("2", "1", answered("b")), ("3", "2", typed("c"))],  # in a circle
        [("1", "2", {"type": "system"}), ("2", "1", {"type": "system"}), ("3", "2", typed("c"))],  # the same
        [("1", None, typed("a")), ("2", "1", answered([{"type": "tool_use", "name": "Bash", "input": {}}])),
         ("3", "2", answered("both")), ("4", "2", typed([{"type": "tool_result", "content": "x"}])),
         ("5", "3", answered("c"))],  # tools side by side
    ],
)  # fmt: skip
def test_what_is_no_branch_of_a_persons_is_not_abandoned(workspace, records):
    workspace.imports("claude-code", workspace.session(*linked(*records)), with_tools=True)
    assert "abandoned" not in workspace.body()


def test_sessions_of_another_project_are_left_out_when_one_is_named(workspace, tmp_path):
    workspace.session(typed("here"), name="one.jsonl")
    workspace.session(typed("there", cwd="/home/ada/project-two"), name="two.jsonl")
    folder = tmp_path / "claude-code"
    found = workspace.imports("claude-code", folder, project=Path("/home/ada/project"))
    assert len(found["new"]) == 1
    assert "here" in workspace.page()
    assert found["skipped"][0]["why"].endswith("did not take place in /home/ada/project")


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_session_behind_a_link_is_not_read(workspace, tmp_path, is_folder):
    outside = workspace.session(typed("bell tower"), name="outside/session.jsonl")
    workspace.session(typed("kept"), name="projects/one/good.jsonl")
    projects = tmp_path / "claude-code/projects"
    order = run.Order(workspace.root, "claude-code", (projects,))
    if is_folder:
        workspace.session(typed("mine"), name="projects/two/session.jsonl")
        files = run.sources(order)
        shutil.rmtree(projects / "two")
        (projects / "two").symlink_to(outside.parent)
    else:
        (projects / "one/link.jsonl").symlink_to(outside)
        files = run.sources(order)
    found = run.report(order, run.run(order, files, lambda *_: None))
    assert "kept" in workspace.page()
    assert "link" in found["skipped"][0]["why"]


def _talk(count, **more):
    """Records u1, u2, … of one session, in turn of a person and the model."""
    said = [typed, answered]
    return [said[n % 2](f"text {n}", uuid=f"u{n}", **more) for n in range(1, count + 1)]


def test_a_record_that_a_branch_repeats_is_one_turn(workspace):
    talk = _talk(3)
    workspace.imports("claude-code", workspace.session(*talk, *talk[:2], typed("last", uuid="u9")))
    assert [workspace.body().count(f"text {n}") for n in (1, 2, 3)] == [1, 1, 1]
    assert "last" in workspace.body()


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
@pytest.mark.parametrize("has_parent", [True, False])
@pytest.mark.parametrize("mark", ["sessionKind", "forkedFrom", "new id"])
def test_the_copy_that_a_background_session_or_a_branch_begins_with_is_left_out(
    workspace, order, has_parent, mark
):
    def copied(one):
        if mark == "sessionKind":
            return one | {"sessionKind": "bg"}
        uuid = one["uuid"]
        return one | {
            "forkedFrom": {"messageUuid": uuid},
            "uuid": f"new {uuid}" if mark == "new id" else uuid,
        }

    old = _talk(4)
    copy = [copied(one) for one in old]
    more = [typed("onward", uuid="b1")]
    chains = [
        old, copy + more, [*copy, *map(copied, more), answered("deeper", uuid="c1")],
        [*copy, typed("apart", uuid="d1")],
    ]  # fmt: skip
    for number, chain in list(zip(order, chains, strict=True))[0 if has_parent else 1 :]:
        workspace.session(*chain, name=f"5e55105e-0000-4000-8000-00000000000{number}.jsonl")
    workspace.imports("claude-code", workspace.home / "claude-code")
    kept = "".join(page.partition("\n---\n")[2] for page in workspace.pages().values())
    assert [kept.count(word) for word in ("onward", "deeper", "apart")] == [1, 1, 1]
    # Without the parent no copy is the beginning of the other, and both keep it.
    assert {kept.count(f"text {n}") for n in (1, 2, 3, 4)} == {1 if has_parent else 2}


@pytest.mark.parametrize("numbers", [(1, 2, 3), (3, 2, 1)])
def test_a_fork_of_a_fork_repeats_no_turn(workspace, numbers):
    """Each has new ids, and names those of the session that it was made from."""
    sessions = [f"5e55105e-0000-4000-8000-00000000000{number}" for number in numbers]
    talk = _talk(2)
    for generation, session in enumerate(sessions):
        if generation:
            origin = {"sessionId": sessions[generation - 1]}
            talk = [
                one
                | {"uuid": f"{generation}-{one['uuid']}", "forkedFrom": origin | {"messageUuid": one["uuid"]}}
                for one in talk
            ]
        talk.append(typed(f"said in {generation}", uuid=f"own {generation}"))
        workspace.session(*talk, name=f"{session}.jsonl")
    workspace.imports("claude-code", workspace.home / "claude-code")
    kept = "".join(page.partition("\n---\n")[2] for page in workspace.pages().values())
    words = ["text 1", "text 2", "said in 0", "said in 1", "said in 2"]
    assert [kept.count(one) for one in words] == [1] * 5


@pytest.mark.parametrize("names", [(1, 2, 3), (3, 2, 1)])
def test_a_session_that_is_resumed_in_a_new_file_goes_on_there(workspace, names):
    """Some versions copy the old records without a mark."""
    talk = _talk(6)
    for name, end in zip(names, (2, 4, 6), strict=True):
        workspace.session(*talk[:end], name=f"5e55105e-0000-4000-8000-00000000000{name}.jsonl")
    workspace.imports("claude-code", workspace.home / "claude-code")
    kept = [page.partition("\n---\n")[2] for page in workspace.pages().values()]
    assert sorted("".join(kept).count(f"text {n}") for n in range(1, 7)) == [1] * 6
    assert len(kept) == 3

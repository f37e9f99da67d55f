"""Agents, a hook's program and an editor write into one workspace at the same time, and nothing is lost."""

import os
import threading
import time

import anyio
from agent_session import agent
from daemon_process import until

SECONDS = float(os.environ.get("WRITING_S", "4"))  # of writing; `.ci/long` has a minute of it
SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "se", "to", "vi", "zu")


def word(writer, number):
    """Return a word that one entry has and no other."""
    return f"{writer}" + "".join(SYLLABLES[int(digit)] for digit in f"{number:05}")


def fact(writer, number):
    """Return what one writer says, too long to be written in one piece by chance."""
    return f"The {word(writer, number)} was seen.\n\n" + f"{word(writer, number)} again. " * 20 + "The end."


def by_agent(workspace, writer, give_up, acknowledged):
    """Store facts through MCP, one after the other."""

    async def session():
        async with agent(workspace) as client:
            number = 0
            while time.monotonic() < give_up:
                number += 1
                said = {"topic": writer, "title": f"Fact {number}", "content": fact(writer, number)}
                answer = await client.call_tool("extract_memory", said)
                assert not answer.is_error, answer.content
                acknowledged[answer.structured_content["path"]] = word(writer, number)

    anyio.run(session)


def by_program(workspace, writer, give_up, acknowledged):
    """Store facts as a hook's shell does: a process of memctl for each, into the topic of an agent."""
    number = 0
    while time.monotonic() < give_up:
        number += 1
        done = workspace.memctl(
            "add", "--topic", "agentone", "--title", f"Fact {number}", fact(writer, number)
        )
        assert done.returncode == 0, done.stderr
        acknowledged[done.stdout.strip()] = word(writer, number)


def by_editor(workspace, writer, give_up, acknowledged):
    """Save notes as editors do: a file beside, put in the place of the one there was."""
    number = 0
    while time.monotonic() < give_up:
        number += 1
        path = workspace.root / f"edited{number % 7}.md"
        beside = path.with_suffix(".tmp")
        beside.write_text(fact(writer, number))
        beside.rename(path)
        acknowledged[path.name] = word(writer, number)
        time.sleep(0.02)


def test_every_acknowledged_entry_is_there_whole_and_found(workspace):
    give_up = time.monotonic() + SECONDS
    kept: list[dict[str, str]] = [{}, {}, {}, {}]
    failures = []

    def run(work, *args):
        try:
            work(*args)
        except BaseException as error:  # noqa: BLE001 - a thread's error is the test's
            failures.append(error)

    threads = [
        threading.Thread(target=run, args=(by_agent, workspace, "agentone", give_up, kept[0])),
        threading.Thread(target=run, args=(by_agent, workspace, "agenttwo", give_up, kept[1])),
        threading.Thread(target=run, args=(by_program, workspace, "hook", give_up, kept[2])),
        threading.Thread(target=run, args=(by_editor, workspace, "editor", give_up, kept[3])),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert all(kept), [len(one) for one in kept]
    workspace.daemon.add(workspace.root)
    for writer, entries in zip(("agentone", "agenttwo", "hook", "editor"), kept, strict=True):
        for path, own in entries.items():
            text = (workspace.root / path).read_text()
            assert text.count(own) == 21, path
            assert text.rstrip().endswith("The end."), path
            found = until(lambda own=own: workspace.found(own, mode="keyword"))
            assert path in found, (writer, path, found)
    assert workspace.daemon.untruths() == []

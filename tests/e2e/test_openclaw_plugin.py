"""OpenClaw's plugin under node, against a real daemon; tests/clients runs it in OpenClaw itself."""

import json
import shutil
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, until
from patience import ran

import memctl.agents

pytestmark = pytest.mark.usefixtures("shared_daemon")

PLUGIN = Path(str(files(memctl.agents) / "openclaw" / "index.js"))
NOTE = "The staging database listens on 5433, because 5432 is taken.\n"

# Stands in for OpenClaw: registers the plugin, then does what the arguments say, a JSON array each.
HOST = """
import { readFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import plugin from PLUGIN
const [settings, root, ...calls] = process.argv.slice(1).map((text) => JSON.parse(text))
const { setTimeout } = globalThis
globalThis.setTimeout = (act, ms) => setTimeout(act, ms / FASTER)
const children = () => readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").match(/\\d+/g) ?? []
const tools = {}
let capability
plugin.register({
  pluginConfig: settings,
  runtime: { agent: { resolveAgentWorkspaceDir: () => root } },
  registerMemoryCapability: (given) => (capability = given),
  registerTool: (make, { names }) => (tools[names[0]] = make({ workspaceDir: root })),
})
const opened = (purpose) => capability.runtime.getMemorySearchManager({ cfg: {}, agentId: "main", purpose })
const { manager } = await opened()
const act = {
  aborted: () => manager.search("x", { signal: AbortSignal.abort() }).catch(String),
  abortedLater: () => manager.search("x", { signal: AbortSignal.timeout(500) }).catch(String),
  together: () => Promise.all([manager.search("staging"), manager.readFile({ relPath: "port.md" })]),
  children,
  killed: async () => {
    for (const child of children()) process.kill(Number(child), "SIGKILL")
    while (children().length) await pause(10)
  },
  closed: async () => {
    await capability.runtime.closeAllMemorySearchManagers()
    while (children().length) await pause(10)
  },
  counted: async () => (await opened("status")).manager.status(),
}
for (const [name, ...given] of calls) {
  let said
  if (name in act) said = await act[name]()
  else if (name === "origins") said = await capability.runtime.classifyWorkspaceMemoryPaths(given[0])
  else if (name in tools) said = (await tools[name].execute("id", given[0])).details
  else said = await Promise.resolve(manager[name](...given)).catch(String)
  console.log(JSON.stringify(said ?? null))
}
"""


# A memctl that does what a real one does not do on request: its first argument says what. It keeps what it
# reads in the file that the second one names.
FAKE = """
import json, sys, time
what, kept = sys.argv[1:3]
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
if what == "fails":
    sys.exit("Traceback\\nmemctl: /run/memd is open to other users: chmod 700 /run/memd")
for line in sys.stdin:
    with open(kept, "a") as stream:
        stream.write(line)
    asked = json.loads(line)
    if what == "babbles":
        print("Welcome!", flush=True)
    if what == "floods":
        while True:
            sys.stdout.write("x" * 1048576)
    if what == "works":
        for step in range(8):
            token = asked["params"]["_meta"]["progressToken"]
            say(method="notifications/progress", params={"progressToken": token, "progress": step})
            time.sleep(0.5)
        answer = {"hits": [], "confidence": "none", "mode": "hybrid", "degraded": []}
        say(id=asked["id"], result={"content": [], "structuredContent": answer, "isError": False})
"""


def plugin(
    daemon: Daemon, root: Path, *calls: list[object], faster: float = 1, **settings: object
) -> list[dict]:
    """Return what the plugin answers to each call; its timers run *faster* than they should."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed: apt-get install nodejs")
    settings = {"memctl": [sys.executable, "-m", "memctl"]} | settings
    code = HOST.replace("PLUGIN", json.dumps(str(PLUGIN))).replace("FASTER", str(faster))
    arguments = [json.dumps(one) for one in (settings, str(root), *calls)]
    done = ran(["node", "--input-type=module", "-e", code, "--", *arguments], env=daemon.environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]  # splitlines knows other ends


@pytest.fixture
def root(tmp_path):
    """A folder with notes that no daemon knows yet."""
    lines = "".join(f"Line {number}\n" for number in range(1, 501))
    return folder_of(tmp_path / "claw", {"port.md": NOTE, "MEMORY.md": lines})


def test_it_searches_and_reads_a_folder_that_memd_did_not_know(daemon, root):
    found, read, part = plugin(
        daemon, root,
        ["memory_search", {"query": "on which port is the staging database", "maxResults": 1}],
        ["memory_get", {"path": "port.md"}],
        ["memory_get", {"path": "MEMORY.md", "from": 3, "lines": 2}],
    )  # fmt: skip
    (hit,) = found["results"]
    assert {key: hit[key] for key in ("path", "startLine", "endLine", "source", "citation")} == {
        "path": "port.md", "startLine": 1, "endLine": 1, "source": "memory", "citation": "port.md#L1-L1",
    }  # fmt: skip
    assert "5433" in hit["snippet"]
    assert 0 < hit["score"] <= 1
    assert (found["provider"], found["mode"], bool(found["model"])) == ("memd", "hybrid", True)
    assert read == {"status": "ok", "text": NOTE.strip(), "path": "port.md", "from": 1, "lines": 1}
    assert part["text"] == "Line 3\nLine 4"
    assert (part["from"], part["lines"], part["truncated"], part["nextFrom"]) == (3, 2, True, 5)


def test_what_was_saved_a_moment_ago_is_found(daemon, root):
    plugin(daemon, root, ["sync"])
    folder_of(root, {"memory/new.md": "The zebra crossing is closed.\n"})
    (found,) = plugin(daemon, root, ["search", "zebra crossing"])
    assert found[0]["path"] == "memory/new.md"


def test_one_process_of_memctl_serves_a_workspace_and_none_is_left(daemon, root):
    daemon.add(root)
    both = ["together"]
    (found, read), one, killed, again, another, closed, last, third = plugin(
        daemon, root, both, ["children"], ["killed"], both, ["children"], ["closed"], both, ["children"]
    )
    assert (found[0]["path"], read["status"]) == ("port.md", "ok")
    assert again == last == [found, read]
    assert killed is closed is None
    assert [len(one), len(another), len(third)] == [1, 1, 1]
    assert len({*one, *another, *third}) == 3
    until(lambda: not Path("/proc", third[0]).exists())


def test_a_status_has_the_counts_of_the_index(daemon, root):
    """For OpenClaw's pages; whoever only searches does not wait for them."""
    counted, plain = plugin(daemon, root, ["sync"], ["counted"], ["status"])[1:]
    assert (counted["files"], counted["workspaceDir"]) == (2, str(root))
    assert counted["chunks"] >= 2
    assert plain == {key: value for key, value in counted.items() if key not in {"files", "chunks"}}


def test_no_separator_but_a_line_feed_ends_a_message(daemon, root):
    """JSON leaves U+2028 as it is, and a character may come in two pieces."""
    text = "One\u2028two\u0085three " + "\N{PILE OF POO}" * 30_000
    (root / "port.md").write_text(text)
    daemon.add(root)
    (read,) = plugin(daemon, root, ["memory_get", {"path": "port.md"}])
    assert read["text"] == text


def test_it_starts_a_daemon_that_is_down(daemon, root):
    daemon.add(root)
    daemon.stop()
    (found,) = plugin(daemon, root, ["search", "staging database"])
    assert found[0]["path"] == "port.md"


def test_errors_are_told_to_the_model(daemon, root, tmp_path):
    daemon.add(root)
    missing, outside, nothing, aborted = plugin(
        daemon, root, ["memory_get", {"path": "nowhere.md"}], ["memory_get", {"path": "../x.md"}],
        ["search", "qqxyzzy qqplugh"], ["aborted"],
    )  # fmt: skip
    assert missing == {"status": "not_found", "text": "", "path": "nowhere.md"}
    assert outside["status"] == "not_found"
    assert nothing == []
    assert "Abort" in aborted
    daemon.stop()
    (down,) = plugin(daemon, root, ["memory_search", {"query": "x"}], memctl=["/nowhere/memctl"])
    assert (down["results"], down["unavailable"]) == ([], True)
    assert "/nowhere/memctl does not start" in down["error"]


@pytest.fixture
def fake(tmp_path):
    """Return the settings of a plugin whose memctl does as it is told, and the file of what that reads."""
    (tmp_path / "fake.py").write_text(FAKE)
    kept = tmp_path / "kept"
    return lambda what: {"memctl": [sys.executable, str(tmp_path / "fake.py"), what, str(kept)]}, kept


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("fails", "memctl mcp ended (exit code 1): /run/memd is open to other users: chmod 700 /run/memd"),
        ("babbles", "memctl mcp does not speak MCP: "),
        ("floods", "memctl mcp does not speak MCP: a line of more than 67108864 characters"),
    ],
)
def test_a_process_that_fails_is_told_and_ended(daemon, root, fake, what, error):
    settings, _ = fake
    said, _ = plugin(daemon, root, ["memory_search", {"query": "x"}], ["closed"], **settings(what))
    assert error in said["error"]


def test_a_process_that_does_not_answer_is_given_up(daemon, root, fake):
    settings, kept = fake
    search = ["memory_search", {"query": "x"}]
    said, first, again, second = plugin(
        daemon, root, search, ["children"], search, ["children"], faster=8, **settings("hangs")
    )
    assert said["error"] == again["error"] == "memd did not answer within 25 s. Is it well? memctl status"
    assert not {*first} & {*second}
    asked, cancelled = map(json.loads, kept.read_text().splitlines()[:2])
    assert (asked["params"]["name"], cancelled["method"]) == ("search_memory", "notifications/cancelled")
    assert cancelled["params"]["requestId"] == asked["id"]


def test_an_aborted_call_is_cancelled(daemon, root, fake):
    settings, kept = fake
    said, children = plugin(daemon, root, ["abortedLater"], ["children"], **settings("hangs"))
    assert "TimeoutError" in said
    assert len(children) == 1
    assert json.loads(kept.read_text().splitlines()[1])["method"] == "notifications/cancelled"


def test_progress_gives_a_call_more_time(daemon, root, fake):
    """A first search waits for the first index: here 4 s, where 3 s of silence are too many."""
    settings, _ = fake
    (said,) = plugin(daemon, root, ["memory_search", {"query": "x"}], faster=8, **settings("works"))
    assert said == {"results": [], "provider": "memd", "model": None, "mode": "hybrid"}


def test_a_socket_in_a_folder_of_others_is_refused(daemon, root, tmp_path):
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (said,) = plugin(
        daemon, root, ["memory_search", {"query": "x"}], socket=str(tmp_path / "open" / "memd.sock")
    )
    assert "not a private folder" in said["error"]


def test_files_that_lead_out_of_the_workspace_are_not_its_owners(daemon, root, tmp_path):
    """OpenClaw puts MEMORY.md into prompts by itself only where it is the owner's."""
    (tmp_path / "elsewhere.md").write_text("x")
    (root / "USER.md").symlink_to(tmp_path / "elsewhere.md")
    asked = {"workspaceDir": str(root), "relativePaths": ["MEMORY.md", "USER.md", "missing.md"]}
    pinned = asked | {"readSources": [{"relativePath": "MEMORY.md", "canonicalRelativePath": "MEMORY.md"}]}
    local, remote = plugin(daemon, root, ["origins", asked], ["origins", pinned])
    assert [one["originClass"] for one in local] == ["owner", "untrusted", "untrusted"]
    assert [one["originClass"] for one in remote] == ["owner", "untrusted", "untrusted"]

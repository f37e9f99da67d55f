"""OpenClaw's plugin under node, against a real daemon; tests/clients runs it in OpenClaw itself."""

import json
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from daemon_process import Daemon

import memctl.agents

PLUGIN = Path(str(files(memctl.agents) / "openclaw" / "index.js"))
NOTE = "The staging database listens on 5433, because 5432 is taken.\n"

# Stands in for OpenClaw: registers the plugin, then does what the arguments say, a JSON array each.
HOST = """
import plugin from PLUGIN
const [settings, root, ...calls] = process.argv.slice(1).map((text) => JSON.parse(text))
const tools = {}
let capability
plugin.register({
  pluginConfig: settings,
  runtime: { agent: { resolveAgentWorkspaceDir: () => root } },
  registerMemoryCapability: (given) => (capability = given),
  registerTool: (make, { names }) => (tools[names[0]] = make({ workspaceDir: root })),
})
const { manager } = await capability.runtime.getMemorySearchManager({ cfg: {}, agentId: "main" })
for (const [name, ...given] of calls) {
  let said
  if (name === "aborted") said = await manager.search("x", { signal: AbortSignal.abort() }).catch(String)
  else if (name === "origins") said = await capability.runtime.classifyWorkspaceMemoryPaths(given[0])
  else if (name in tools) said = (await tools[name].execute("id", given[0])).details
  else said = await Promise.resolve(manager[name](...given)).catch(String)
  console.log(JSON.stringify(said ?? null))
}
"""


def plugin(daemon: Daemon, root: Path, *calls: list[object], **settings: object) -> list[dict]:
    """What the plugin answers to each call."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed: apt-get install nodejs")
    settings = {"memctl": [sys.executable, "-m", "memctl"]} | settings
    code = HOST.replace("PLUGIN", json.dumps(str(PLUGIN)))
    arguments = [json.dumps(one) for one in (settings, str(root), *calls)]
    done = subprocess.run(
        ["node", "--input-type=module", "-e", code, "--", *arguments],
        env=daemon.environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def root(tmp_path):
    """A folder with notes that no daemon knows yet."""
    root = tmp_path / "claw"
    (root / "memory").mkdir(parents=True)
    (root / "port.md").write_text(NOTE)
    (root / "MEMORY.md").write_text("".join(f"Line {number}\n" for number in range(1, 501)))
    return root


def test_it_searches_and_reads_a_folder_that_memd_did_not_know(daemon, root):
    """It registers the folder; a hit has OpenClaw's shape, and its place can be read."""
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
    assert read == {"status": "ok", "text": NOTE.strip(), "path": "port.md", "from": 1, "lines": 1}
    assert part["text"] == "Line 3\nLine 4"
    assert (part["from"], part["lines"], part["truncated"], part["nextFrom"]) == (3, 2, True, 5)


def test_what_was_saved_a_moment_ago_is_found(daemon, root):
    """There is nothing to reindex: a search waits for what is on the disk."""
    plugin(daemon, root, ["sync"])
    (root / "memory" / "new.md").write_text("The zebra crossing is closed.\n")
    (found,) = plugin(daemon, root, ["search", "zebra crossing"])
    assert found[0]["path"] == "memory/new.md"


def test_it_starts_a_daemon_that_is_down(daemon, root):
    """As every client of memd does."""
    daemon.add(root)
    daemon.stop()
    (found,) = plugin(daemon, root, ["search", "staging database"])
    assert found[0]["path"] == "port.md"


def test_errors_are_told_to_the_model(daemon, root, tmp_path):
    """That recall failed, and why; what is not there is no error."""
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


def test_a_private_note_is_not_read(daemon, root):
    """OpenClaw's model is an agent."""
    (root / "port.md").write_text(f"---\nprivate: true\n---\n{NOTE}")
    daemon.add(root)
    assert daemon.found("staging database", workspace=str(root)) == ["port.md"]
    found, read = plugin(daemon, root, ["search", "staging database"], ["memory_get", {"path": "port.md"}])
    assert [hit for hit in found if hit["path"] == "port.md"] == []
    assert read["status"] == "not_found"


def test_a_socket_in_a_folder_of_others_is_refused(daemon, root, tmp_path):
    """Somebody else could be listening there."""
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


def test_it_has_no_private_note_and_no_secret(daemon, root):
    """Its model is an agent, whatever a tool is given."""
    token = "ghp_" + "aB3dE5fG7hJ9" * 3
    (root / "pay.md").write_text(f"---\nprivate: true\n---\n{NOTE}")
    (root / "port.md").write_text(f"{NOTE}Its token is {token}.\n")
    query = {"query": "on which port is the staging database", "agent": False}
    found, read, private = plugin(
        daemon, root,
        ["memory_search", query], ["memory_get", {"path": "port.md"}], ["memory_get", {"path": "pay.md"}],
    )  # fmt: skip
    assert {hit["path"] for hit in found["results"]} == {"port.md"}
    assert "[masked: github-pat]" in read["text"]
    assert token not in json.dumps([found, read])
    assert "5433" not in json.dumps(private)

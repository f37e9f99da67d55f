"""Lua in a real Neovim without a screen, for tests."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from patience import ran

# Two calls that all scripts have: `finish` prints a value as JSON and leaves; `eventually` lets the editor
# work until a condition holds.
PRELUDE = """
local function finish(value)
  io.stdout:write(vim.json.encode(value))
  vim.cmd('qall!')
end
local function eventually(condition)
  assert(vim.wait(80000, condition, 10), 'that never came')
end
"""
TIMEOUT_S = 240  # a test that hangs; the slowest takes a tenth of it


def run_lua(
    script: str, *, environment: Mapping[str, str], folder: Path, cwd: str | Path, options: list[str]
) -> Any:
    """Return what *script* gave to `finish`.

    Args:
        script: Lua, run when the editor is up.
        environment: all of it.
        folder: where the script is written.
        cwd: where the editor runs.
        options: of its command line.
    """
    if shutil.which("nvim") is None:
        pytest.skip("nvim is not installed: apt-get install neovim")
    path = folder / "script.lua"
    path.write_text(PRELUDE + script)
    done = ran(
        ["nvim", "--headless", "-n", *options, "-c", f"luafile {path}", "-c", "cquit 9"],
        env=dict(environment), cwd=cwd, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S,
    )  # fmt: skip
    # Right behind the editor's own messages there is no line end.
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    assert done.stdout.startswith(("{", "[")), done.stdout + done.stderr
    return json.loads(done.stdout)

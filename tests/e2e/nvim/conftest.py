"""Editor, daemon and notes for the tests of the Neovim plugin."""

import contextlib
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path

import pytest
from daemon_process import Daemon
from headless_nvim import run_lua

REPOSITORY = Path(__file__).parents[3]
PLUGIN = REPOSITORY / "memctl/editors/nvim"

# What the user is told is collected in `said`; `search` returns the quickfix list that a search has filled.
LUA = """
local memd = require('memd')
local out, said = {{}}, {{}}
local garden, kitchen = {garden}, {kitchen}
vim.notify = function(text, level) said[#said + 1] = {{text = text, level = level}} end
local function list()
  local found = vim.fn.getqflist({{title = 0, items = 0, context = 0}})
  -- Behind it stands what is still to be read, in a workspace that was made just now.
  found.title, found.caveats = found.title:match('^([^(]*[^( ]) ?%(?(.-)%)?$')
  return found
end
local function search(query, bang)
  vim.fn.setqflist({{}}, 'r', {{title = 'none yet', items = {{}}}})
  vim.cmd('MemSearch' .. (bang or '') .. ' ' .. query)
  eventually(function() return #list().items > 0 or #said > 0 end)
  return list()
end
local function ask(method, params)
  local err, answer
  memd.request(method, params, function(...) err, answer = ... end)
  eventually(function() return err or answer end)
  return err, answer
end
local function answered(...)
  local err, answer = ask(...)
  return assert(answer, err)
end
{body}
finish(out)
"""


def word_workspace(daemon, root, **notes):
    """Make a workspace that is found by words alone; "__" in a name is a folder."""
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')
    for name, text in notes.items():
        path = root / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return daemon.add(root)


def garden_and_kitchen(daemon, folder):
    """Two workspaces; "weir" stands in both."""
    garden = word_workspace(
        daemon, folder / "garden",
        heron="# Birds\n\nÜber dem Fluß: a heron stands by the weir.\n", birds__owl="An owl at night.\n",
    )  # fmt: skip
    kitchen = word_workspace(daemon, folder / "kitchen", bread="Sourdough rises behind the weir.\n")
    return garden, kitchen


@pytest.fixture
def new_workspace():
    """The function that makes a workspace for one test."""
    return word_workspace


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A daemon with two workspaces, for tests that harm neither."""
    home = tmp_path_factory.mktemp("house")
    daemon = Daemon(home)
    daemon.start()
    yield daemon, *garden_and_kitchen(daemon, home)
    daemon.close()


@pytest.fixture
def own_house(daemon, tmp_path):
    """The same for a test that stops, freezes or kills the daemon."""
    yield daemon, *garden_and_kitchen(daemon, tmp_path)
    # A test that failed may have left the daemon frozen, or one that it started itself: nobody else wakes it.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
        asked.connect(str(daemon.socket))
        pid, _, _ = struct.unpack("3i", asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        os.kill(pid, signal.SIGCONT)


@pytest.fixture
def bin_dir(tmp_path):
    """A folder with a memctl of this tree, as an installation has one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "memctl"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m memctl "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.fixture
def editor(tmp_path, bin_dir):
    """A function that runs Lua in a headless Neovim with the plugin, in the garden."""

    def run(house, body, cwd=None, **environment):
        daemon, garden, kitchen = house
        return run_lua(
            LUA.format(garden=json.dumps(garden), kitchen=json.dumps(kitchen), body=body),
            environment=daemon.environment | {"PATH": f"{bin_dir}:{os.environ['PATH']}"} | environment,
            folder=tmp_path,
            cwd=cwd or garden,
            options=["--clean", "--cmd", f"let &runtimepath = '{PLUGIN},' . &runtimepath"],
        )

    return run

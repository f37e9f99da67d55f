"""Editors with the Neovim plugin, a daemon and notes."""

import json
import shutil
from pathlib import Path

import pytest
from typed_nvim import new_nvim

PLUGIN = Path(__file__).parents[3] / "memctl/editors/nvim"
NOTES = {
    "log.md": "# Log\n\nWaders in the mud of the weir.\n\nThe risk of cancer by a mutation of a gene.\n",
    "birds/Ann Heron.md": "# Profile\n\nThe heron is a wader 😀 that stands in the mud by the weir.\n",
    "genes.md": "# Genes\n\nMutations of a gene raise the risk of cancer.\n",
}


@pytest.fixture
def root(daemon, tmp_path):
    """A workspace."""
    return daemon.add_notes(tmp_path / "notes", NOTES)


@pytest.fixture
def editor(neovim, memctl):
    """A function that starts an editor with the plugin; `said` has what the user is told."""

    def start(cwd, program=None, setup=""):
        script = (
            "vim.o.columns, vim.o.lines, vim.o.hidden, said = 140, 40, true, {}\n"
            "vim.notify = function(text) said[#said + 1] = text end\n"
            "vim.cmd('filetype plugin on')\n"
            f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})\n"
            f"require('memd').setup({{memctl = {json.dumps(str(memctl))}}})\n{setup}\n"
            "vim.cmd('runtime plugin/memd.lua')"
        )
        return neovim(program or shutil.which("nvim"), cwd, script)

    return start


@pytest.fixture(params=["0.7", "0.11"])
def program(request):
    """Both versions of Neovim."""
    return new_nvim() or "none" if request.param == "0.11" else shutil.which("nvim")

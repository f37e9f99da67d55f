"""The recipes of docs/editors.md work as they stand, in the editors themselves."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from patience import ran
from test_readme import block, has_quickfix

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def run(sample, memctl):
    """Run an editor as somebody who has memctl on the PATH and stands in a folder of the sample workspace."""

    def run(*argv, **environment):
        path = f"{memctl.parent}:{os.environ['PATH']}"
        done = ran(
            argv, env=sample.daemon.environment | {"PATH": path} | environment, cwd=f"{sample.root}/people",
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("editor", ["vim", "nvim"])
@pytest.mark.parametrize("asked", [("breast cancer gene", 1), ('breast | cancer\'s "mutation" % # $HOME', 7)])
def test_the_command_for_vim_fills_the_quickfix_list(run, sample, tmp_path, editor, asked):
    if not has_quickfix(editor):
        pytest.skip(f"there is no {editor} with quickfix lists: apt-get install vim neovim")
    query, column = asked
    script, kept = tmp_path / "readme.vim", tmp_path / "kept.json"
    script.write_text(
        block("vim", "command!") + f"MemSearch {query}\n"
        "let kept = [&buftype, getqflist({'title': 0}).title, getqflist()]\n"
        "let paths = map(copy(kept[2]), 'fnamemodify(bufname(v:val.bufnr), \":p\")')\n"
        f"call writefile([json_encode(kept + [paths])], '{kept}')\n"
        "qall!\n"
    )
    # Vim ends an -es session with 1 where a message was an error; what was kept says more.
    quiet = ["--headless", "--clean", "-n"] if editor == "nvim" else ["-es", "-N", "-u", "NONE", "-n"]
    run("sh", "-c", 'timeout 50 "$@"; true', "sh", editor, *quiet, "-S", str(script))
    buftype, title, entries, paths = json.loads(kept.read_text())
    assert (buftype, title) == ("quickfix", f"memd: {query}")
    place = paths.index(f"{sample[1]}/research/brca1.md")
    assert (entries[place]["valid"], entries[place]["lnum"], entries[place]["col"]) == (1, 1, column)
    assert entries[place]["text"] == "BRCA1 mutation analysis"


@pytest.fixture
def emacs(run, tmp_path):
    """Load the page's lines into Emacs, evaluate one more, wait for its buffer, go to the first hit."""
    if shutil.which("emacs") is None:
        pytest.skip("emacs is not installed: apt-get install emacs-nox")
    init = tmp_path / "readme.el"
    init.write_text(block("elisp", "memd-search"))

    def first_hit(expression):
        visit = """(progn
          (while (get-buffer-process "*grep*") (accept-process-output nil 0.05))
          (next-error)
          (with-current-buffer (window-buffer (selected-window))
            (princ (format "%s:%d" (buffer-file-name) (line-number-at-pos)))))"""
        return run("emacs", "--batch", "-Q", "-l", str(init), "--eval", expression, "--eval", visit)

    return first_hit


def test_the_function_for_emacs_lists_hits_that_can_be_visited(emacs, sample):
    query = 'breast cancer\'s \\"mutation\\" $HOME | ;'
    assert emacs(f'(memd-search "{query}")').endswith(f"{sample[1]}/research/brca1.md:1")


def test_emacs_own_grep_takes_the_command_line(emacs, sample):
    command = block("elisp", "memd-search").rpartition("a whole command line: ")[2].strip()
    assert command == "memctl search --vimgrep breast cancer gene"
    asked = f'(progn (require (quote grep)) (grep-compute-defaults) (grep "{command}"))'
    assert emacs(asked).endswith(f"{sample[1]}/research/brca1.md:1")


def test_the_two_lines_install_the_plugin(run, tmp_path):
    if shutil.which("nvim") is None:
        pytest.skip("nvim is not installed: apt-get install neovim")
    for _ in range(2):
        run("sh", "-e", "-c", block("sh", "memctl editors nvim"), HOME=str(tmp_path))
    kept = tmp_path / "kept"
    keep = f"call writefile([expand('%:p'), exists(':MemRelated')], '{kept}')"
    run("nvim", "--headless", "-n", "-c", "help memd", "-c", keep, "-c", "qall!", HOME=str(tmp_path))
    path, defined = kept.read_text().splitlines()
    assert Path(path).resolve() == REPOSITORY / "memctl/editors/nvim/doc/memd.txt"
    assert defined == "2"


def test_the_task_for_vs_code_matches_every_line_of_its_command(sample):
    [task] = json.loads(block("json", "problemMatcher"))["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    arguments = [word.replace("${input:words}", "breast cancer gene") for word in task["args"]]
    lines = sample.memctl(*arguments).stdout.splitlines()
    assert lines
    found = [re.match(pattern["regexp"], line) for line in lines]
    for line, match in zip(lines, found, strict=True):
        assert match is not None, line
        assert (Path(sample.root) / match[pattern["file"]]).is_file()
        assert int(match[pattern["line"]]) >= 1
        assert int(match[pattern["column"]]) >= 1
    assert found[0][pattern["message"]] == "BRCA1 mutation analysis"


@pytest.mark.parametrize("untried", ["not tried in", "**was not run**", "documentation and not tried"])
def test_the_page_says_what_was_not_tried(untried):
    page = (Path(__file__).parents[2] / "docs/editors.md").read_text(encoding="utf-8")
    assert untried in " ".join(page.split())

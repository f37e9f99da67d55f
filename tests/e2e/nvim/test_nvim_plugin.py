"""The Neovim plugin for its user: real editors with typed keys, a real daemon."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from patience import PATIENCE

PLUGIN = Path(__file__).parents[3] / "memctl/editors/nvim"
HERE = "vim.fn.expand('%:t') .. vim.fn.line('.')"
WINDOWS = "#vim.api.nvim_list_wins()"


def has(text):
    """A condition: some window shows a text."""
    return (
        "(function() for _, one in ipairs(vim.api.nvim_list_wins()) do for _, line in ipairs("
        "vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(one), 0, -1, false)) do "
        f"if line:find('{text}', 1, true) then return true end end end end)()"
    )


def test_a_search_is_live_with_the_note_beside_it_and_opens_the_hit(editor, program, root):
    nvim = editor(root, program)
    nvim.type(":Mem<CR>")
    nvim.until(WINDOWS + " == 4")
    nvim.type("waders mud path:birds")
    nvim.until(has("birds/Ann Heron.md:3  The heron"))
    nvim.until(has("# Profile"))  # the note itself
    nvim.type("<C-u>mutation")
    nvim.until(has("genes.md:3  Mutations"))
    nvim.type("<Esc>:Mem mutation<CR>")  # one question: the order of the hits stays
    nvim.until(has("genes.md:3  Mutations"))
    nvim.until(has("log.md:5  The risk"))
    shown = "(function() for _, one in ipairs(vim.api.nvim_list_wins()) do if vim.wo[one].cursorline then "
    shown += "return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(one), 0, -1, false) end end end)()"
    second = nvim.lua(f"return {shown}")[1].partition("  ")[0]
    nvim.type("<C-n><CR>")
    nvim.until(WINDOWS + " == 1 and vim.fn.mode() == 'n'")
    assert nvim.lua("return " + HERE) == second.replace(":", "")


def test_hits_go_to_the_quickfix_list_and_escape_leaves_all_as_it_was(editor, root):
    nvim = editor(root)
    nvim.type(":edit log.md<CR>:Mem heron weir<CR>")
    nvim.until(has("birds/Ann Heron.md:3"))
    nvim.type("<Esc>")
    nvim.until(f"{WINDOWS} == 1 and {HERE} == 'log.md1' and vim.fn.mode() == 'n'")
    nvim.type(":Mem heron weir<CR>")
    nvim.until(has("birds/Ann Heron.md:3"))
    nvim.type("<C-q>")
    nvim.until("vim.bo.buftype == 'quickfix'")
    [first, *_] = nvim.lua("return vim.fn.getqflist()")
    assert first["lnum"] == 3
    assert nvim.lua("return said") == []


def test_related_notes_follow_the_cursor(editor, program, root):
    nvim = editor(root, program)
    nvim.type(":edit log.md<CR>5G:MemRelated<CR>")
    nvim.until(has("  genes.md:3"))
    assert nvim.lua("return " + HERE) == "log.md5"
    row = "vim.api.nvim_buf_get_lines(vim.fn.winbufnr(2), 0, 2, false)[2]"
    nvim.until(f"{row} == '  genes.md:3'")
    nvim.type("3G")
    nvim.until(f"{row} == '  birds/Ann Heron.md:3'")
    nvim.type("<C-w>l<CR>")
    nvim.until(f"{HERE} == 'Ann Heron.md3' and {WINDOWS} == 2")
    nvim.type(":MemRelated<CR>")
    nvim.until(WINDOWS + " == 1")
    nvim.type("ggj")  # nothing follows any more
    nvim.type(":MemRelated<CR>:close<CR>:MemRelated<CR>")  # in the last window
    nvim.until(f"{WINDOWS} == 1 and vim.bo.buftype == ''")
    assert nvim.lua("return vim.v.errmsg") == ""


def test_lines_become_an_entry(editor, program, root):
    nvim = editor(root, program)
    nvim.type(":edit log.md<CR>:3MemAdd Where waders are<CR>")
    nvim.until("#vim.fn.glob('memory/**/*waders*', true, true) == 1")
    [entry] = Path(root).glob("memory/**/*waders*")
    assert "Waders in the mud of the weir." in entry.read_text()
    assert "title: Where waders are" in entry.read_text()


def test_the_server_is_there_in_notes_of_a_workspace_alone(editor, program, root, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/x.md").write_text("# X\n")
    nvim = editor(root, program)
    nvim.lua(f"vim.cmd('edit {tmp_path}/other/x.md')")
    assert nvim.lua("return vim.bo.filetype") == "markdown"
    assert nvim.lua("return package.loaded['memd.picker'] == nil and vim.lsp.get_client_by_id(1) == nil")
    nvim.lua(f"vim.cmd('edit {root}/log.md')")
    nvim.until("vim.bo.omnifunc == 'v:lua.vim.lsp.omnifunc'")
    nvim.lua("vim.o.completeopt = 'menuone,noselect'")
    nvim.type("Go[[Ann<C-x><C-o>")
    nvim.until("vim.fn.pumvisible() == 1 and #vim.fn.complete_info({'items'}).items > 0")


def test_a_server_that_ended_is_started_again(editor, program, root):
    nvim = editor(root, program)
    nvim.type(":Mem heron<CR>")
    nvim.until(has("birds/Ann Heron.md:3"))
    nvim.type("<Esc>")
    nvim.lua("vim.lsp.stop_client(1, true)")
    nvim.until("vim.lsp.get_client_by_id(1) == nil")
    nvim.type(":Mem mutation<CR>")
    nvim.until(has("genes.md:3"))


def test_a_memctl_that_is_not_there_is_told(editor, root):
    nvim = editor(root, setup="require('memd').setup({memctl = '/no/such/memctl'})")
    nvim.type(":Mem heron<CR>")
    assert "'/no/such/memctl' can't be run" in nvim.until("said[1]")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{timeout = 3}", "there is no option 'timeout'; there are memctl, workspace, settings"),
        ("{workspace = 3}", "workspace must be a string"),
    ],
)
def test_a_setting_that_does_not_exist_is_refused(editor, root, given, told):
    said = editor(root).lua(f"return tostring(select(2, pcall(require('memd').setup, {given})))")
    assert told in said


def test_the_workspace_of_the_settings_is_searched_from_anywhere(editor, root, tmp_path):
    nvim = editor(tmp_path, setup=f"require('memd').setup({{workspace = '{root}'}})")
    nvim.type(":Mem heron<CR>")
    nvim.until(has("birds/Ann Heron.md:3"))


def test_a_statusline_says_off_ready_and_stuck_without_waiting(editor, daemon, root):
    nvim = editor(root)
    nvim.lua("vim.cmd('edit log.md')")
    line = "require('memd').statusline()"
    assert nvim.lua(f"return {line}") == "memd"
    nvim.until(f"{line} == 'memd ready'")
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        nvim.until(f"{line} == 'memd stuck'")
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    nvim.until(f"{line} == 'memd ready'")
    daemon.stop()
    nvim.until(f"{line} == 'memd off'")


def test_the_sources_of_other_pickers_read_what_memctl_prints(editor, daemon, root):
    """The pickers themselves are not installed here."""
    nvim = editor(root)
    [line, *_] = daemon.memctl(
        "search", "--vimgrep", "--limit", "50", "--", "heron", cwd=root
    ).stdout.splitlines()
    hit = nvim.lua(f"return require('memd.sources').hit([==[{line}]==])")
    assert (hit["filename"], hit["lnum"]) == ("birds/Ann Heron.md", 3)
    assert nvim.lua("return require('memd.sources').hit('no hit') == nil")


def test_the_help_page_is_found(editor, root, tmp_path):
    """The list of tags that is shipped is the one that the page gives."""
    nvim = editor(root)
    for subject in ("memd", ":Mem", "memd.statusline()"):
        nvim.lua(f"vim.cmd('help {subject}')")
        assert nvim.lua("return vim.api.nvim_buf_get_name(0)") == str(PLUGIN / "doc/memd.txt")
    shutil.copytree(PLUGIN / "doc", tmp_path / "doc")
    (tmp_path / "doc/tags").unlink()
    subprocess.run(
        ["nvim", "--headless", "--clean", "-c", f"helptags {tmp_path}/doc", "-c", "qall!"],
        check=True, timeout=60 * PATIENCE,
    )  # fmt: skip
    assert (tmp_path / "doc/tags").read_text() == (PLUGIN / "doc/tags").read_text()

"""`memctl lsp` in real editors: Neovim 0.7 and 0.11 with typed keys, and Emacs with eglot."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE
from typed_nvim import new_nvim

pytestmark = pytest.mark.usefixtures("shared_daemon")

NOTES = {
    "log.md": "# Log\n\nSee [[Ann Heron]] and [[Nobody]].\n\n"
    "The risk of breast cancer by a mutation of a gene.\n",
    "Ann Heron.md": "---\naliases: [Annie]\n---\n# Profile\n\nShe likes waders 😀 and [[genes]].\n",
    "genes.md": "# Genes\n\nMutations of a gene raise the risk of cancer.\n\n"
    "## Reset the switch\n\nPress it.\n",
}
PAGE = (Path(__file__).parents[2] / "docs/editors.md").read_text(encoding="utf-8")
RECIPES = [one for one in re.findall(r"(?ms)^```lua\n(.*?)^```$", PAGE) if "'memctl', 'lsp'" in one]
EAGER, OLD = (
    one.replace("'memctl', 'lsp'", f"{json.dumps(sys.executable)}, '-m', 'memctl', 'lsp'") for one in RECIPES
)
WORDS = (  # the menu
    "vim.tbl_map(function(one) return one.abbr ~= '' and one.abbr or one.word end, "
    "vim.fn.complete_info({'items'}).items)"
)


@pytest.fixture
def root(daemon, tmp_path):
    return daemon.add_notes(tmp_path / "notes", NOTES)


@pytest.fixture
def started(neovim, root):
    """Return a function that starts an editor with a script, which opens log.md, and waits for the server."""

    def start(program, script):
        nvim = neovim(
            program, root, f"vim.o.completeopt = 'menuone,noselect'\n{script}\nvim.cmd('edit log.md')"
        )
        nvim.until("#vim.diagnostic.get(0) == 1")  # that of [[Nobody]]
        return nvim

    return start


def typed(nvim, keys, offered):
    """Type, and wait until the menu offers something: this version asks for letters only while it is open."""
    nvim.type(keys)
    nvim.until(f"vim.fn.pumvisible() == 1 and vim.tbl_contains({WORDS}, '{offered}')")


def test_neovim_0_11_completes_while_words_are_typed(started):
    nvim = started(new_nvim(), EAGER)
    nvim.type("Go")
    typed(nvim, "[[", "Genes")
    for letter in "anni":
        typed(nvim, letter, "Annie")
    nvim.type("<C-n><C-y>")
    nvim.until("vim.fn.getline('.') == '[[Ann Heron|Annie]]'")
    typed(nvim, "<Esc>oreset the switch: [[", "Genes")
    typed(nvim, "<Esc>o[[reset ", "Genes")  # the space asks, whether or not a menu was open
    typed(nvim, "<Esc>o[[genes#", "Reset the switch")
    typed(nvim, "r", "Reset the switch")


def test_neovim_0_11_follows_shows_lists_and_renames_by_its_own_keys(started, root):
    nvim = started(new_nvim(), EAGER)
    nvim.type("3G0fnK")
    nvim.until("#vim.api.nvim_list_wins() == 2")
    nvim.type("<C-]>")
    nvim.until("vim.fn.expand('%:t') == 'Ann Heron.md'")
    nvim.until("#vim.lsp.get_clients({bufnr = 0}) == 1")
    nvim.type("grr")
    nvim.until("#vim.fn.getqflist() == 1 and vim.fn.bufname(vim.fn.getqflist()[1].bufnr):match('log.md')")
    nvim.type(":cclose<CR>:edit log.md<CR>5G0gri")
    nvim.until("vim.fn.expand('%:t') == 'genes.md' or vim.fn.getqflist({title = 0}).title == 'LSP locations'")
    nvim.type(":cclose<CR>:edit log.md<CR>3G0fngrn")
    nvim.until("vim.fn.mode() == 'c'")
    nvim.type("<C-u>Anna<CR>")
    nvim.until("vim.fn.getline(3) == 'See [[Anna]] and [[Nobody]].'")
    nvim.until("vim.fn.filereadable('Anna.md') == 1")
    assert not Path(root, "Ann Heron.md").exists()
    nvim.type("3G0fNgra")
    nvim.until("vim.fn.mode() ~= 'n' or vim.fn.bufnr('Nobody.md') > 0")
    nvim.type("1<CR>")
    nvim.until("vim.fn.bufnr('Nobody.md') > 0")


def test_neovim_0_11_searches_by_workspace_symbols(started):
    nvim = started(new_nvim(), EAGER)
    nvim.lua("vim.lsp.buf.workspace_symbol('mutation path:genes.md')")
    nvim.until("#vim.fn.getqflist() >= 1 and vim.fn.getqflist()[1].lnum == 3")


def test_neovim_0_7_completes_by_its_omnifunc_and_follows(started):
    nvim = started(shutil.which("nvim"), OLD)
    nvim.type("Go[[Ann<C-x><C-o>")
    nvim.until(f"vim.tbl_contains({WORDS}, 'Annie')")
    nvim.type("<C-n><C-y>")
    nvim.until("vim.fn.getline('.') == '[[Ann Heron|Annie]]'")
    nvim.type("<Esc>")
    nvim.type("3G0fn:lua vim.lsp.buf.definition()<CR>")
    nvim.until("vim.fn.expand('%:t') == 'Ann Heron.md'")


def test_neovim_0_7_renames_a_heading_with_the_links_of_another_buffer(started):
    nvim = started(shutil.which("nvim"), OLD)
    nvim.type("Go[[genes#Reset the switch]]<Esc>")
    nvim.type(":edit genes.md<CR>5G:lua vim.lsp.buf.rename('Press')<CR>")
    nvim.until("vim.fn.getline(5) == '## Press'")
    nvim.type(":buffer log.md<CR>G")
    nvim.until("vim.fn.getline('$') == '[[genes#Press]]'")


EMACS = """
(setq inhibit-message t)
(package-initialize)
(require 'eglot)
(setq eglot-sync-connect t eglot-autoshutdown t)
(add-to-list 'eglot-server-programs '(text-mode . (%(python)s "-m" "memctl" "lsp")))
(defun place (xref)
  (let ((at (xref-item-location xref)))
    (vector (file-name-nondirectory (xref-location-group at)) (or (xref-location-line at) 0))))
(let (out)
  (find-file "log.md")
  (text-mode)
  (apply #'eglot--connect (eglot--guess-contact))
  (goto-char (point-min))
  (search-forward "[[Ann")
  (push (cons 'definition
              (vconcat (mapcar #'place (xref-backend-definitions 'eglot "LSP identifier at point.")))) out)
  (goto-char (point-max))
  (insert "[[anni")
  (let ((capf (eglot-completion-at-point)))
    (push (cons 'completions
                (vconcat (all-completions "" (nth 2 capf) (plist-get (nthcdr 3 capf) :predicate)))) out))
  (goto-char (point-min))
  (search-forward "The risk of")
  (push (cons 'related
              (vconcat (mapcar #'place (eglot--lsp-xrefs-for-method :textDocument/implementation)))) out)
  (push (cons 'symbols
              (vconcat (mapcar #'substring-no-properties (eglot--workspace-symbols "mutation")))) out)
  (let ((until (+ (float-time) 30)))
    (while (and (< (float-time) until) (null eglot--diagnostics))
      (accept-process-output nil 0.1)))
  (push (cons 'hints (vconcat (mapcar #'flymake-diagnostic-text eglot--diagnostics))) out)
  (find-file "genes.md")
  (text-mode)
  (eglot--managed-mode 1)
  (eglot--signal-textDocument/didOpen)
  (goto-char (point-min))
  (search-forward "## Res")
  (eglot-rename "Press")
  (push (cons 'renamed (buffer-substring (line-beginning-position) (line-end-position))) out)
  (let ((coding-system-for-write 'utf-8)) (write-region (json-encode out) nil %(out)s)))
"""


def test_emacs_with_eglot_follows_completes_relates_searches_and_renames(daemon, root, tmp_path):
    """Batch Emacs has no command loop: the functions behind the keys are called."""
    if shutil.which("emacs") is None:
        pytest.skip("Emacs is not installed: apt-get install emacs-nox elpa-eglot")
    script, out = tmp_path / "eglot.el", tmp_path / "out.json"
    script.write_text(EMACS % {"python": json.dumps(sys.executable), "out": json.dumps(str(out))})
    done = subprocess.run(
        ["emacs", "--batch", "-l", str(script)],
        env=daemon.environment, cwd=root, capture_output=True, text=True, timeout=120 * PATIENCE, check=False,
    )  # fmt: skip
    if "Cannot open load file" in done.stderr and "eglot" in done.stderr:
        pytest.skip("eglot is not installed: apt-get install elpa-eglot")
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["definition"] == [["Ann Heron.md", 1]]
    assert found["completions"][0] == "Annie"
    assert ["genes.md", 3] in found["related"]
    assert any("Mutations of a gene" in one for one in found["symbols"])
    assert found["hints"] == ["memd [missing]: Nobody: no such note"]
    assert found["renamed"] == "## Press"

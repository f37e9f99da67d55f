"""`memctl lsp`: a language server for editors on stdin and stdout."""

import sys
from argparse import ArgumentParser, Namespace

from memctl.arguments import flag


def arguments(parser: ArgumentParser) -> None:
    flag(parser, "--stdio", "accepted, for editors that add it")
    parser.epilog = """\
It serves the notes that the editor opens, each with the workspace around it. docs/editors.md has the set-up.

example, for Neovim 0.11:
  vim.lsp.config('memd', {cmd = {'memctl', 'lsp'}, filetypes = {'markdown'}}); vim.lsp.enable('memd')
"""


def run(_: Namespace) -> int:
    if sys.stdin.isatty():
        from memctl.commands import common

        common.note("this is a server that speaks JSON with an editor on stdin and stdout; Ctrl-C ends it")
    from memctl.lsp.server import serve

    return serve()

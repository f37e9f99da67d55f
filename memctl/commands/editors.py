"""`memctl editors`: print the folder of an editor's plugin."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from memctl import exits
from memctl.exits import CommandError

PLUGINS = Path(__file__).resolve().parents[1] / "editors"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("editor", choices=("nvim", "vscode"), help="the editor")
    parser.epilog = """\
Prints a folder of this installation and changes nothing. Neovim loads the plugin at its next start after:

  mkdir -p ~/.local/share/nvim/site/pack/memd/start
  ln -sfn "$(memctl editors nvim)" ~/.local/share/nvim/site/pack/memd/start/memd

VS Code takes a copy of its folder: docs/editors.md.
Delete the link to remove the plugin; make it again after installing memd into another folder.
Vim and Emacs read `memctl search --vimgrep`: docs/editors.md has the configuration for them.
"""


def run(args: Namespace) -> int:
    folder = PLUGINS / args.editor
    if not folder.is_dir():
        raise CommandError(f"{folder} is missing: install memd again", exits.INTERNAL)
    print(folder)
    return exits.OK

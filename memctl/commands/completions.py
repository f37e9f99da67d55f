"""`memctl completions`: print a completion script for a shell."""

import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module

from memctl import exits

SHELLS = ("bash", "zsh", "fish")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell to print a script for")
    parser.epilog = """\
Prints a script and changes nothing. Generate it again after an update of memd.

examples:
  bash   echo 'source <(memctl completions bash)' >> ~/.bashrc
  zsh    memctl completions zsh > "${fpath[1]}/_memctl"
  fish   memctl completions fish > ~/.config/fish/completions/memctl.fish
"""


def run(args: Namespace) -> int:
    from memctl.completion.pages import pages  # imports every command

    module = import_module(f"memctl.completion.{args.shell}")
    sys.stdout.write(module.script(pages()))
    return exits.OK

"""The manual pages in roff that a wheel installs into share/man: of memctl, its commands, and memd.

They are made of help pages. A help page is laid out already: a word before a colon begins a section, indented
lines are kept as they are, and the others are filled to the width of the reader's terminal.
"""

import os
import re
from importlib import import_module

from memctl import __version__
from memctl.arguments import actions_of, overview, parser_of
from memctl.commands import COMMANDS
from memd.__main__ import parser

COLUMNS = "80"  # the width of help pages within a manual page, which does not know the reader's terminal
SUMMARY = "search the memory that memd keeps"
_FLAGS = re.compile(r"(?P<indent>  +)(?P<flags>-\S.*?)(?P<rest>  .*)?$")


def pages() -> dict[str, str]:
    """Return file name → source."""
    os.environ["COLUMNS"] = COLUMNS  # which argparse reads
    made = {"memctl": page("memctl", SUMMARY, overview())}
    for command, summary in COMMANDS.items():
        made[f"memctl-{command}"] = page(f"memctl-{command}", summary, *help_pages(command))
    made["memd"] = page("memd", "keep memory searchable: the daemon of memctl", parser().format_help())
    return {f"{name}.1": text for name, text in sorted(made.items())}


def help_pages(command: str) -> list[str]:
    """Return the help page of *command* and those of its actions."""
    top = parser_of(command, import_module(f"memctl.commands.{command}").arguments)
    return [one.format_help() for one in (top, *actions_of(top).values())]


def page(name: str, summary: str, *help_pages: str) -> str:
    """Return the manual page of *name*, "memctl-search", from its help page and those of its actions."""
    title = f'.TH {_text(name.upper())} 1 "" "memd {__version__}" "memd"'
    lines = [title, ".SH NAME", f"{_text(name)} \\- {_text(summary)}"]
    for number, help_page in enumerate(help_pages):
        usage, _, rest = help_page.removeprefix("usage: ").partition("\n\n")
        heading = "SYNOPSIS" if number == 0 else " ".join(re.findall(r"^[a-z -]+(?= )", usage)).upper()
        lines += [f".SH {_text(heading)}", ".nf", *map(_text, usage.splitlines()), ".fi"]
        lines += [".SH DESCRIPTION"] if number == 0 else []
        for paragraph in rest.strip("\n").split("\n\n"):
            lines += _paragraph(paragraph.splitlines(), "SS" if number else "SH")
    return "\n".join(lines) + "\n"


def _paragraph(lines: list[str], section: str) -> list[str]:
    """Return roff of lines without an empty one; "options:" on the first begins a section."""
    heading = lines[0][:-1] if lines and re.fullmatch(r"[a-z][a-z ]*:", lines[0]) else ""
    made = [f".{section} {heading.upper()}"] if heading else [".PP"]
    kept = False
    for line in lines[bool(heading) :]:
        if line.startswith(" ") != kept:
            kept = not kept
            made.append(".nf" if kept else ".fi")
        made.append(_flags_bold(line))
    return [*made, *[".fi"] * kept]


def _flags_bold(line: str) -> str:
    if not (found := _FLAGS.match(line)):
        return _text(line)
    return f"{found['indent']}\\fB{_text(found['flags'])}\\fR{_text(found['rest'] or '')}"


def _text(line: str) -> str:
    """Return *line* so that roff prints it as it is."""
    escaped = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    escaped = escaped.replace("^", "\\(ha").replace("~", "\\(ti")
    escaped = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in escaped)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped

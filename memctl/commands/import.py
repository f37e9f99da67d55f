"""`memctl import`: import conversations into the archive by running `python -m memd.imports`."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import Any

from memctl import exits, workspaces
from memctl.arguments import filled_path, flag, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output.status import counted
from memctl.text import one_line

CLIENTS = (
    *("claude-code", "codex", "chatgpt", "claude", "discord"),
    *("openclaw", "cowagent", "basic-memory", "letta", "claude-mem"),
)
FOLLOWED = frozenset(CLIENTS) - {"chatgpt", "claude", "discord"}  # exports do not grow
WITH_PROJECTS = frozenset({"claude-code", "codex"})
MEMORIES = ("claude-code", "codex", "gemini", "cursor")  # clients that keep notes for themselves

SHOWN = 20  # files of a list that are shown; --json has all


def arguments(parser: ArgumentParser) -> None:
    clients = tuple(dict.fromkeys(CLIENTS + MEMORIES))
    parser.add_argument("client", choices=clients, metavar="CLIENT", help=", ".join(clients))
    parser.add_argument(
        "paths", nargs="*", default=[],  # otherwise argparse names it among what is required
        type=filled_path, metavar="PATH", help="its files, or folders of them (see below)",
    )  # fmt: skip
    flag(parser, "--dry-run", "write nothing; print what would be written")
    flag(parser, "--with-tools", "keep tool calls, their results, and thinking")
    flag(parser, "--subagents", "also the sessions of sub-agents, each as a page of its own")
    flag(parser, "--memory", "the notes that the client keeps for itself, instead of its sessions")
    parser.add_argument(
        "--project", type=filled_path, metavar="DIR",
        help="only sessions of an agent that worked in DIR or below it",
    )  # fmt: skip
    flag(parser, "--all-projects", "with --memory: not only of the workspace's folder")
    flag(parser, "--follow", "then keep importing new turns, until Ctrl-C")
    flag(parser, "--again", "also write conversations that you have deleted from the archive")
    workspace_option(parser)
    flag(parser, "--json", "one object; with --follow, one for each pass")
    parser.epilog = _EPILOG


_EPILOG = """\
Writes each conversation into the workspace as a Markdown file, memory/archives/CLIENT/YYYY/DAY-TITLE-ID.md,
with a heading for each turn. The files are searched like all notes.

CLIENT       PATH
claude-code  its sessions; default: ~/.claude/projects
codex        its sessions; default: ~/.codex/sessions and archived_sessions
chatgpt      the export that chatgpt.com sends: a zip, or the conversations.json in it
claude       the export that claude.ai sends: the same
discord      JSON of DiscordChatExporter, one file for each channel, or a zip of them
openclaw     a workspace with MEMORY.md and memory/; default: ~/.openclaw/workspace
cowagent     the same; default: ~/cow
basic-memory a project's folder of notes; default: ~/basic-memory
letta        an agent's MemFS; default: ~/.letta/agents/*/memory
claude-mem   its database; default: ~/.claude-mem/claude-mem.db

With --memory: the client's own notes, as copies in memory/archives/CLIENT-memory/. A note that is deleted
there is deleted here, too. Only notes of the workspace's folder and those below it, or of --project DIR.

CLIENT       PATH
claude-code  default: ~/.claude/projects/PROJECT/memory
codex        default: ~/.codex/memories
gemini       default: ~/.gemini/GEMINI.md and ~/.gemini/tmp/PROJECT/memory
cursor       default: .cursor/rules in the project and below it

The import can be repeated: conversations that have grown are updated; files that you have changed or deleted
since are left alone and listed. The client's files are only read. Secrets of a known form are masked. Text
that memd added to a prompt is left out.

Exit code 0; 1 if no file of the client was found.

examples:
  memctl import claude-code --dry-run
  memctl import claude-code --project . --follow
  memctl import claude-code --memory
  memctl import chatgpt ~/Downloads/chatgpt-export.zip
"""


def run(args: Namespace) -> int:
    from memctl import child  # imports subprocess, which help and completions do not need

    _check(args)
    workspace = workspaces.find(args.workspace)
    done = child.report(_command(args, workspace), "the import", lambda later: _show(later["imported"], args))
    _show(done, args)
    is_nothing = done["skipped"] and not done["conversations"] and not done["gone"]
    return exits.NONE if is_nothing else exits.OK


def _check(args: Namespace) -> None:
    """Reject options that would have no effect."""
    if args.memory:
        if args.client not in MEMORIES:
            raise CommandError(f"--memory is for {', '.join(MEMORIES)}; of {args.client} leave it out")
        if args.with_tools or args.subagents:
            raise CommandError("--with-tools and --subagents are for sessions: notes have neither")
        if args.follow and args.dry_run:
            raise CommandError(
                "--follow and --dry-run do not go together: nothing would be written, for ever"
            )
        if args.project and args.all_projects:
            raise CommandError("--project DIR or --all-projects, not both")
        if args.client == "cursor" and args.all_projects:
            raise CommandError("Cursor keeps its rules in each project: name one with --project DIR")
        return
    if args.client not in CLIENTS:
        raise CommandError(
            f"memd reads only the notes of {args.client}: memctl import {args.client} --memory"
        )
    if args.all_projects:
        raise CommandError("--all-projects goes with --memory: sessions are of all projects anyway")
    if args.client not in FOLLOWED and not args.paths:
        raise CommandError(f"which export? memctl import {args.client} FILE.zip (or JSON, or a folder)")
    if args.follow and (args.client not in FOLLOWED or args.dry_run):
        raise CommandError("--follow is for files that grow: " + ", ".join(sorted(FOLLOWED)))
    if args.subagents and args.client not in WITH_PROJECTS:
        raise CommandError("--subagents is for agents that have some: " + ", ".join(sorted(WITH_PROJECTS)))
    if args.project and args.client not in WITH_PROJECTS:
        raise CommandError("--project is for agents with projects: " + ", ".join(sorted(WITH_PROJECTS)))


def _command(args: Namespace, workspace: str) -> list[str]:
    flags = [
        f"--{name}"
        for name in ("with-tools", "subagents", "again", "dry-run", "follow", "memory", "all-projects")
        if getattr(args, name.replace("-", "_"))
    ]
    if args.project:
        flags.append(f"--project={os.path.realpath(args.project)}")
    named = [str(path.absolute()) for path in args.paths]
    return ["memd.imports", *flags, "--", workspace, args.client, *named]


def _show(report: dict[str, Any], args: Namespace) -> None:
    if args.json:
        common.print_json(report)
    else:
        sys.stdout.write(_page(report))
        left = [f"left alone: {one_line(file['path'])} {file['why']}" for file in report["left_alone"]]
        for line in (*_some(left), *_some([_skipped(*rows) for rows in _alike(report["skipped"])])):
            common.note(line)
    sys.stdout.flush()  # --follow: show each line at once


def _page(report: dict[str, Any]) -> str:
    """Return one line for each file that was written, and a summary."""
    would = "would be " if report["dry_run"] else ""
    files = [f"{would}{what}: {one_line(path)}" for what in ("new", "grown", "gone") for path in report[what]]
    unit = "note" if report["memory"] else "conversation"
    gone = f"{len(report['gone'])} {would}gone, " if report["memory"] else ""
    summary = (
        f"{counted(report['conversations'], unit)} of {report['client']} in {report['folder']}: "
        f"{len(report['new'])} {would}new, {len(report['grown'])} {would}grown, {gone}"
        f"{report['unchanged']} unchanged, {len(report['left_alone'])} left alone"
    )
    return "".join(f"{line}\n" for line in (*_some(files), summary))


def _alike(rows: list[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """Return the rows of files skipped for one reason together: an export may lie among many files."""
    found: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["why"], row["whole"]), []).append(row)
    return found.values()


def _skipped(row: dict[str, Any], *others: dict[str, Any]) -> str:
    """Return the line of a file that was not read, or only in part, and of others for the same reason."""
    what = "skipped" if row["whole"] else "not all of"
    if others:
        return f"{what}: {one_line(row['source'])} and {counted(len(others), 'other')}: {row['why']}"
    unit = row["why"].partition(" ")[0]  # the unit that is counted: line, conversation or message
    more = " and others" if row["count"] > 1 else ""
    where = f" ({unit} {row['first_line']}{more})" if row["first_line"] else ""
    many = f"{row['count']:,} times: " if row["count"] > 1 else ""
    return f"{what}: {one_line(row['source'])}: {many}{row['why']}{where}"


def _some(lines: list[str]) -> list[str]:
    more = len(lines) - SHOWN
    return lines if more <= 0 else [*lines[:SHOWN], f"… and {more:,} more (--json lists all)"]

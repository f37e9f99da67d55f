"""`memctl init`: make a folder searchable."""

import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from shlex import quote
from typing import Any

from memctl import exits, gitattributes, workspaces
from memctl.arguments import flag
from memctl.client import Client, RpcError
from memctl.commands import common
from memctl.output.status import counted
from memctl.text import about, one_line

ESTIMATE_S = 1.0  # of indexing are enough to estimate the rest; a small folder is done by then
MODEL_S = 2.0  # the shipped model has loaded by then, which shows what scripts it reads
POLL_S = 0.05  # a status costs a millisecond
_WORTH_A_MODEL = 20  # per cent of the chunks; below a fifth another model is not worth a line to everybody
_DIFF3 = "        Each machine also needs: git config merge.conflictStyle diff3"
SCAN_TIMEOUT_S = 120.0  # registering counts the sources of a folder, which may be large or slow


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="(default: the current folder)")
    flag(parser, "--force", "also for / and the home folder")
    flag(
        parser,
        "--nested",
        "also for a folder inside a workspace, which then no longer indexes the notes below DIR",
    )
    flag(
        parser,
        "--gitattributes",
        "also add a line to DIR/.gitattributes, so that git joins what two machines add to a day",
    )
    flag(parser, "--json", "one object: root, created, sources, config")
    parser.epilog = """\
Writes DIR/memory/config.toml, or a file of its own if DIR is read-only, and registers the folder; changes no
note. Repeating it does no harm. Indexing
continues in the background: notes can be found by words within seconds, and by meaning once they are
embedded, recently changed notes first. memctl status shows the progress.

example:
  memctl init ~/notes
"""


def run(args: Namespace) -> int:
    """Make a folder a workspace, and print its state and the next step."""
    folder = workspaces.absolute(args.folder)
    with common.daemon() as client:
        params = {"path": folder, "force": args.force, "nested": args.nested}
        try:
            answer = client.call("workspace.add", params, timeout_s=SCAN_TIMEOUT_S)
        except RpcError as error:
            if error.code != "MEMD_NESTED" or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            common.note(str(error).rpartition(". ")[0])  # the last sentence names a command to run
            if not common.confirmed("Go on?"):
                raise
            answer = client.call("workspace.add", params | {"nested": True}, timeout_s=SCAN_TIMEOUT_S)
        index = {} if args.json else _index_soon(client, answer["root"])
        is_read = not (args.json or index.get("first_words"))
        languages = _proposed_languages(client, answer["root"]) if is_read else []
    is_added = args.gitattributes and gitattributes.add(answer["root"])
    if args.json:
        common.print_json(answer)
        return exits.OK
    root = one_line(answer["root"])
    print(f"{root}: {'made' if answer['created'] else 'already'} a workspace, "
          f"{counted(answer['sources'], 'source')} found")  # fmt: skip
    print(f"index:  {_progress(index)}")
    elsewhere = "" if answer["config"].startswith(f"{answer['root']}/") else ", as this folder is read-only"
    print(f"config: {one_line(answer['config'])}{elsewhere}")
    if (
        share := round(100 * (index.get("unreadable") or 0) / max(index.get("chunks") or 0, 1))
    ) >= _WORTH_A_MODEL:
        print(
            f"model:  {share} % of these notes are in a script or language that the model does not read: "
            f"only words find them. {_multilingual(root)}"
        )
    if languages:
        named = json.dumps(languages, separators=(",", ":"))
        print(
            f"words:  these notes are in {', '.join(map(str.capitalize, languages))}. To find words in all "
            f"their forms: memctl workspaces configure -w {quote(root)} {quote(f'languages={named}')}"
        )
    if index.get("first_words"):  # the notes read so far may be in another language than the others
        print("words:  languages are proposed by all notes: run memctl init again when their words are there")
    if is_added:
        print(f"git:    added the line to {root}/.gitattributes\n{_DIFF3}")
    if gitattributes.is_missing(answer["root"]):
        print(
            f"git:    to join what two machines add to the same day, {root}/.gitattributes needs this "
            f"line (--gitattributes adds it):\n        {gitattributes.LINE}\n{_DIFF3}"
        )
        if sys.stdin.isatty() and sys.stderr.isatty() and common.confirmed("Add the line?"):
            gitattributes.add(answer["root"])
    if answer["created"]:
        print(f"next:   cd {quote(root)} && {_own_name()} search WORD…")
    for inner in answer.get("within") or ():
        common.note(f"{inner} is a separate workspace: its notes are not searched from here")
    advise()
    return exits.OK


def _own_name() -> str:
    """Return the name that runs this memctl: another one may be the first in PATH, or none."""
    from shutil import which

    typed = sys.argv[0]
    known = which("memctl")
    if (
        "/" not in typed
        or typed.endswith("__main__.py")
        or (known is not None and os.path.realpath(known) == os.path.realpath(typed))
    ):
        return "memctl"
    return quote(os.path.abspath(typed))  # noqa: PTH100 - a link stays; it is run from another folder


def _multilingual(root: str) -> str:
    """Return how to use a model that reads these notes."""
    from memctl import versions
    from memctl.model_store import MULTILINGUAL, MULTILINGUAL_DISTRIBUTION, installed

    use = f"memctl models use {MULTILINGUAL} -w {quote(root)}"
    if MULTILINGUAL in installed():
        return f"To find them by meaning: {use}"
    in_clone = "build the model in a clone of memd and pip install ./models"
    how = f"pip install {MULTILINGUAL_DISTRIBUTION}" if versions.PUBLISHED else in_clone
    return f"To find them by meaning, {how}, then {use}"


def _index_soon(client: Client, root: str) -> dict[str, Any]:
    """Wait until a small folder is indexed or a large one has an estimate; return the index's status."""
    with suppress(RpcError):  # the timeout
        client.call("index", {"workspace": root, "vectors": False}, timeout_s=ESTIMATE_S)
    give_up = time.monotonic() + MODEL_S
    while True:
        answer = client.call("status", {"workspace": root}, timeout_s=common.SEARCH_TIMEOUT_S)
        workspace: dict[str, Any] = answer["workspaces"][0]
        is_failed = {"model-failed", "numpy-missing"} & set(workspace.get("degraded") or ())
        # Then memd knows which scripts the model reads, or that there is no model.
        is_known = workspace.get("provider") in {None, "none"} or workspace.get("model_id") or is_failed
        if is_known or time.monotonic() > give_up:
            return workspace
        time.sleep(POLL_S)


def _proposed_languages(client: Client, root: str) -> list[str]:
    """Return the languages of the notes if the configuration lacks one of them, otherwise []."""
    try:
        shown = client.call("workspace.configure", {"workspace": root}, timeout_s=common.SEARCH_TIMEOUT_S)
    except RpcError:  # the timeout: a proposal is not worth a longer wait
        return []
    found, named = shown["languages_found"], shown["config"]["languages"]
    return found if named and not set(found) <= set(named) else []


def _progress(index: dict[str, Any]) -> str:
    """Return whether words and meaning can be searched now, or when."""
    left_s = index.get("left_s") or {}
    if index.get("first_words"):
        words = f"searchable by words in about {about(left_s['words'])}" if left_s.get("words") else ""
        return f"{words or 'being made'}, by meaning later (memctl status shows how far it is)"
    if not index.get("pending_vectors"):
        meaning = "" if index.get("embedded") is None else " and by meaning"
        return f"searchable by words{meaning}"
    when = f"in about {about(left_s['vectors'])}" if left_s.get("vectors") else "soon"
    return f"searchable by words, by meaning {when}"


def advise() -> None:
    """Print what to do if the systemd drop-in no longer fits the providers of the workspaces."""
    from memctl import systemd

    if systemd.managed():
        common.note(systemd.advice())

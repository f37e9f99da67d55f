"""Shared by the commands: connect to the daemon, read the query, wait for an index, print answers."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from memctl import exits, relative_path, versions, workspaces
from memctl.arguments import filters_of
from memctl.client import Client, NoDaemonError, RpcError, older_daemon
from memctl.exits import CommandError
from memctl.filter_keys import OPTIONS
from memctl.output import caveats
from memctl.paths import PathError, runtime_fault, state_place
from memctl.progress import Progress
from memctl.text import any_text, one_line, safe, terminal_width, to_json, wants_colour

if TYPE_CHECKING:
    from memctl.output.page import PageBlock

SEARCH_TIMEOUT_S = 10.0  # the daemon's own deadline is 5; the rest is for its start and a loaded machine
SILENCE_S = 120.0  # progress arrives each second; a daemon that is silent for so long has lost the request
AT_ONCE_S = 3.0  # for calls that the daemon promises to answer within 1 s: it is stuck if it takes 3
HELLO_TIMEOUT_S = 5.0  # for a daemon that has just reported that it is ready
ABSOLUTE = "//"  # a folder that no path is below: shown from it, all paths are absolute
QUERY_HELP = 'the query; "-" reads it from stdin, after "--" words may begin with "-"'


def query_of(args: Namespace, command: str = "search") -> str:
    """Return the query on the command line; "" if only filters are given.

    Raises:
        CommandError: there is neither a query nor a filter, or the shell expanded the pattern of --path.
    """
    query = words_of(args)
    is_narrowed = any(getattr(args, option.key) for option in OPTIONS)  # filters alone list the newest notes
    if not query.strip() and not is_narrowed:
        raise CommandError(f"no query was given: memctl {command} WORD… (--help has examples)")
    if pattern := relative_path.expanded_by_the_shell(args.path or (), args.words):
        raise CommandError(
            f"the shell expanded a pattern, and some file names became words: quote it, --path '{pattern}'"
        )
    return query


def words_of(args: Any) -> str:
    """Return the words of the command line as one text; a single "-" stands for stdin."""
    words: list[str] = args.words
    return _read_stdin().decode("utf-8", "replace") if words == ["-"] else any_text(" ".join(words))


def _read_stdin() -> bytes:
    if sys.stdin.isatty():
        note("reading from the terminal until Ctrl-D")
    return sys.stdin.buffer.read()


def read_text() -> str:
    """Return all of stdin as text to be stored, without a byte order mark.

    Raises:
        CommandError: it is not UTF-8.
    """
    try:
        return _read_stdin().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"stdin is not UTF-8 at byte {error.start}: nothing was written (iconv -t UTF-8)"
        ) from error


def filters(args: Namespace, workspace: str, *also: str, path: str = "glob") -> dict[str, Any]:
    """Return the workspace, the filters of the command line, and the options *also*, as parameters.

    *path*: the parameter that --path sets; methods about one note use `path` for that note.
    """
    given = filters_of(args, *also)
    globs = relative_path.globs(given.pop("path", ()), workspace)
    return {"workspace": workspace, **given} | ({path: globs} if globs else {})


def daemon() -> Client:
    """Connect to the daemon, starting it if none runs; an older daemon is replaced or reported."""
    was_older = False
    if not os.environ.get("MEMD_SOCKET"):
        note(runtime_fault())
    try:
        client = Client.connect()
        was_older = older_daemon(client.place) is not None
        if not was_older:
            note_other_state(client)
            return client
        client.close()
    except NoDaemonError:
        pass
    from memctl import launch  # slow to import, and most calls find a running daemon

    client = launch.ensure_daemon()
    if was_older:
        holder = older_daemon(client.place)
        note(versions.older_line(holder) if holder else "an older memd was running: it was restarted")
    return client


def note_missed_hooks() -> None:
    """Note once on stderr that prompts got no notes because their hook was late."""
    import time

    from memctl.agents import hooks

    if late := hooks.missed():
        last = time.strftime("%Y-%m-%d %H:%M", time.localtime(late[-1]))
        note(
            f"{len(late)} {'prompts' if len(late) > 1 else 'prompt'} of agents got no notes because the "
            f"hook's time was over, the last at {last}. On a slow machine, MEMD_HOOK_MS sets a longer one"
        )


def note_other_state(client: Client) -> None:
    """Note on stderr that a daemon was started with another HOME: it has other workspaces."""
    from memctl.lock import holder_of

    with suppress(PathError):
        holder = holder_of(state_place())
        with suppress(ProcessLookupError, PermissionError):  # it has ended, and another one has its socket
            if holder is not None and holder.socket == client.place:
                os.kill(holder.pid, 0)
                return  # the lock tells without a question
        theirs = client.call("memd.hello", {}, timeout_s=HELLO_TIMEOUT_S).get("state_dir", "")
        if theirs and theirs != state_place():
            note(
                f"the memd at {client.place} was started with another HOME or XDG_STATE_HOME: its workspaces "
                f"are those of {theirs}, not of {state_place()}. For a memd of this HOME: export "
                f"MEMD_SOCKET={state_place()}/memd.sock"
            )


def print_daemon(client: Client, what: str) -> int:
    """Print version and process of a daemon after *what* happened to it, as "started"; return exit code 0."""
    hello = client.call("memd.hello", {}, timeout_s=HELLO_TIMEOUT_S)
    note_other_state(client)
    print(f"memd {one_line(str(hello['server_version']))} {what} (process {hello['pid']})")
    note(versions.warning(str(hello["server_version"])))
    return exits.OK


def asked(
    method: str, params: dict[str, Any], *, timeout_s: float | None = SEARCH_TIMEOUT_S
) -> dict[str, Any]:
    """Call one method over a new connection; see `ask`."""
    with daemon() as client:
        return ask(client, method, params, timeout_s=timeout_s)


def whole_answer(client: Client, method: str, params: dict[str, Any], args: Namespace) -> dict[str, Any]:
    """Call *method*; if the workspace's first index is not complete, wait for its words and call again.

    A user's first answer must not miss notes that the user knows. Vectors take minutes in a large folder, so
    only --wait waits for them. A workspace that is ready costs one round trip.
    """
    if isinstance(args.sync, float):  # longer than a search may take
        params = params | {"sync": True if synced(client, params["workspace"], args.sync)["synced"] else 1}
    answer = ask(client, method, params, timeout_s=SEARCH_TIMEOUT_S)
    index = answer.get("index") or {}
    if args.wait and (index.get("first") or index.get("pending")):
        wait_for_index(client, params["workspace"])
    elif index.get("first_words") and not args.no_wait:
        what = caveats.RENEWED.get(index.get("renewed") or "", "this is the first index of this workspace")
        note(f"{what}; waiting for its words (--no-wait answers without waiting)")
        try:
            wait_for_index(client, params["workspace"], vectors=False)
        except RpcError as error:
            # A wait without end, a full disk, or a folder that cannot be read: what is indexed answers.
            if error.code not in {"MEMD_TIMEOUT", "MEMD_IO", "MEMD_NOSPACE"}:
                raise
            note(f"{error}. The answer is from what is indexed")
    else:
        return answer
    return ask(client, method, params, timeout_s=SEARCH_TIMEOUT_S)


def synced(client: Client, workspace: str, timeout_s: float) -> dict[str, Any]:
    """Return the answer of `sync` after at most *timeout_s*; its progress goes to stderr."""
    params = {"workspace": workspace, "timeout_ms": max(1, round(timeout_s * 1000))}
    try:
        with Progress() as progress:
            return ask(client, "sync", params, timeout_s=timeout_s, on_progress=progress)
    except RpcError as error:
        if error.code != "MEMD_TIMEOUT":
            raise
        return {"synced": False}


def wait_for_index(client: Client, workspace: str, **options: bool) -> dict[str, Any]:
    """Return the answer of `index`; its progress goes to stderr."""
    return wait_for(client, "index", {"workspace": workspace, "wait": True, **options})


def wait_for(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a method that may take minutes; its progress goes to stderr."""
    with Progress() as progress:
        return ask(client, method, params, timeout_s=SILENCE_S, on_progress=progress)


def ask(client: Client, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Call *method*; the error for a workspace with a config that is not registered names `memctl init`."""
    try:
        answer: dict[str, Any] = client.call(method, params, **options)
    except RpcError as error:
        root = workspaces.above(params["workspace"]) if "workspace" in params else None
        if error.code != "MEMD_WORKSPACE" or root is None or root in workspaces.registered():
            raise
        from shlex import quote  # only for messages

        # A clone on a new machine has the config file but is missing in the registry.
        raise CommandError(
            f"{root} is a workspace that is not registered with this machine's memd yet. "
            f"Register it: memctl init {quote(root)}",
            exits.WORKSPACE,
        ) from error
    return answer


def status_of(answer: dict[str, Any]) -> int:
    """Return the exit code for hits, for no hits, or for no hits after an incomplete search."""
    if answer["hits"]:
        return exits.OK
    return exits.NONE if caveats.is_whole(answer) else exits.INCOMPLETE


def show(blocks: Iterable["PageBlock"]) -> None:
    """Print a page."""
    from memctl.output.page import drawn  # most commands have none

    sys.stdout.write(drawn(blocks, width=terminal_width(), colour=wants_colour()))


def print_answer(answer: dict[str, Any], line: str, *, as_json: bool) -> None:
    """Print an answer as JSON, or *line*, its text for people."""
    print(to_json(answer) if as_json else line)


def print_json(answer: Any) -> None:
    """Print one JSON object on one line."""
    print(to_json(answer))


def print_text(body: str) -> None:
    """Print a note's text: without control characters on a terminal, unchanged, in UTF-8, to a pipe."""
    whole = body if not body or body.endswith("\n") else f"{body}\n"
    if sys.stdout.isatty():
        sys.stdout.write(safe(whole))
    else:  # whatever encoding the environment names for what is shown
        sys.stdout.flush()
        sys.stdout.buffer.write(whole.encode("utf-8", "backslashreplace"))


def note(message: str | None) -> None:
    """Print a line on stderr, unless it is None or empty."""
    if message:
        print(f"memctl: {safe(message)}", file=sys.stderr)


def confirmed(question: str) -> bool:
    """Ask a yes-or-no question on the terminal; any answer except yes is no."""
    print(f"{safe(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def agreed(what: str, question: str, *, may_ask: bool = True) -> bool:
    """Ask *question* on the terminal; if that cannot or may not be, refuse *what*, which --yes confirms."""
    if not may_ask or not sys.stdin.isatty():
        raise CommandError(f"this would {what}: pass --yes to confirm without a terminal")
    return confirmed(question)


def here() -> str:
    """Return the current folder, to which shown paths are relative; if it was deleted, ABSOLUTE."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is a fifth of a start
    except FileNotFoundError:
        return ABSOLUTE

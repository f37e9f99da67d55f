"""What commands share: reach the daemon, name the workspace, wait with progress, write to the screen."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

from memctl import exits, relative_path, versions, workspaces
from memctl.arguments import (
    filters_of,
)
from memctl.client import Client, NoDaemonError, RpcError, older_daemon
from memctl.exits import CommandError
from memctl.filter_keys import OPTIONS
from memctl.output import hits
from memctl.output.text import any_text, one_line, safe, to_json
from memctl.progress import Progress

SEARCH_TIMEOUT_S = 10.0  # the daemon gives up at 5; the rest is for its start and a loaded machine

SILENCE_S = 120.0  # progress comes each second; a daemon that is silent for so long has lost the request


def daemon() -> Client:
    """Return a connection; starts a daemon where none runs, and says where one is older than this memctl."""
    was_older = False
    try:
        client = Client.connect()
        was_older = older_daemon(client.place) is not None
        if not was_older:
            return client
        client.close()
    except NoDaemonError:
        pass
    from memctl import launch  # it loads subprocess and more; most calls find a daemon

    client = launch.ensure_daemon()
    if was_older:
        holder = older_daemon(client.place)
        note(
            versions.older_line(holder) if holder else "the memd that ran was an older one: it was restarted"
        )
    return client


def ask(client: Client, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Call *method*; where the workspace is the trouble, say what makes it one."""
    try:
        answer: dict[str, Any] = client.call(method, params, **options)
    except RpcError as error:
        root = workspaces.above(params["workspace"]) if "workspace" in params else None
        if error.code != "MEMD_WORKSPACE" or root is None:
            raise
        from shlex import quote  # only for messages

        # A clone on a new machine has the config, and the registry does not know it.
        raise CommandError(
            f"{root} is a workspace that this machine's memd does not know yet. "
            f"Register it: memctl init {quote(root)}",
            exits.WORKSPACE,
        ) from error
    return answer


@contextmanager
def shows_older(client: Client, root: str) -> Iterator[None]:
    """Show the text of an entry that is left alone since an older memd wrote it: a person may say --force."""
    try:
        yield
    except RpcError as error:
        path, refused, why = error.message.partition(" was not ")
        if error.code == "MEMD_CHANGED" and refused and "older memd" in why:
            with suppress(RpcError):  # it is not indexed
                text = client.call("get", {"workspace": root, "path": path})["text"]
                print(safe(text), file=sys.stderr)
        raise


def whole_answer(client: Client, method: str, params: dict[str, Any], args: Namespace) -> dict[str, Any]:
    """
    Ask once; where the workspace is so new that its words are not all indexed, wait and ask again.

    The first answer that somebody ever sees must not miss what they know is there. Meaning takes minutes in
    a large folder, so only --wait waits for it. A workspace that is ready costs one round trip.
    """
    answer = ask(client, method, params, timeout_s=SEARCH_TIMEOUT_S)
    index = answer.get("index") or {}
    if args.wait and (index.get("first") or index.get("pending")):
        wait_for_index(client, params["workspace"])
    elif index.get("first_words") and not args.no_wait:
        what = hits.RENEWED.get(index.get("renewed") or "", "this is the first index of this workspace")
        note(f"{what}; waiting for its words (--no-wait answers from what is there)")
        wait_for_index(client, params["workspace"], vectors=False)
    else:
        return answer
    return ask(client, method, params, timeout_s=SEARCH_TIMEOUT_S)


def wait_for_index(client: Client, workspace: str, **options: bool) -> dict[str, Any]:
    """Return the answer of `index`, showing its progress on stderr meanwhile."""
    return wait_for(client, "index", {"workspace": workspace, "wait": True, **options})


def wait_for(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a method that takes as long as it takes, showing its progress on stderr."""
    with Progress() as progress:
        return ask(client, method, params, timeout_s=SILENCE_S, on_progress=progress)


def here() -> str:
    """Return the folder that paths are shown from; "/" where the current one was deleted."""
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib is a fifth of a start
    except FileNotFoundError:
        return "/"


def terminal_width() -> int | None:
    """Return the width of the terminal on stdout, None where there is none."""
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80


def wants_colour(choice: str = "auto") -> bool:
    """Say whether stdout gets colours: as the user chose, else on a terminal that can show them."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_json(answer: Any) -> None:
    """Print one JSON object on one line."""
    print(to_json(answer, ascii_only=ascii_only()))


def show(kind: Literal["status", "health", "workspaces"], answer: dict[str, Any], *, as_json: bool) -> None:
    """Print an answer as JSON, as a table on a terminal, or plain; the renderers are named by *kind*."""
    if as_json:
        print_json(answer)
    elif width := terminal_width():
        from memctl.output import terminal  # it loads rich

        sys.stdout.write(getattr(terminal, kind)(answer, width=width, colour=wants_colour()))
    else:
        from memctl.output import status

        sys.stdout.write(getattr(status, kind)(answer))


def ascii_only() -> bool:
    """Say whether stdout takes ASCII alone: JSON then escapes the rest."""
    return not (sys.stdout.encoding or "").lower().startswith("utf")


def note(message: str | None) -> None:
    """Print a line on stderr; nothing for None."""
    if message:
        print(f"memctl: {safe(message)}", file=sys.stderr)


def confirmed(question: str) -> bool:
    """Ask somebody at the terminal; yes alone is yes."""
    print(f"{safe(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def read_stdin() -> str:
    """Return all of stdin as text; bytes that are not UTF-8 become U+FFFD."""
    if sys.stdin.isatty():
        note("reading from the terminal, Ctrl-D ends")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def words_of(args: Any) -> str:
    """Return the words of the command line as one text; "-" alone stands for stdin."""
    words: list[str] = args.words
    return read_stdin() if words == ["-"] else any_text(" ".join(words))


NO_GOOD_MATCH = "no good match (--nearest shows the nearest there is)"


_QUERY_HELP = 'what to look for; "-" reads it from stdin, after "--" words may begin with "-"'


def status_of(answer: dict[str, Any]) -> int:
    """Return the exit code: of hits, of none, or of none where not all could be searched."""
    if answer["hits"]:
        return exits.OK
    return exits.NONE if hits.is_whole(answer) else exits.INCOMPLETE


def _query(args: Namespace) -> str:
    query = words_of(args)
    is_narrowed = any(getattr(args, one.key) for one in OPTIONS)  # then the newest are listed
    if not query.strip() and not is_narrowed:
        raise CommandError("what should be looked for? memctl search WORD… (--help has examples)")
    if pattern := relative_path.expanded_by_the_shell(args.path or (), args.words):
        raise CommandError(
            f"the shell made files of a pattern, and some became words: quote it, --path '{pattern}'"
        )
    return query


def _print_text(body: str) -> None:
    """Print a note's text: shown safely on a terminal, as it is to a pipe."""
    shown = safe(body) if sys.stdout.isatty() else body
    sys.stdout.write(shown if not shown or shown.endswith("\n") else shown + "\n")


HELLO_TIMEOUT_S = 5.0  # of a daemon that has just said that it is ready


def _tell(client: Client, what: str) -> int:
    hello = client.call("memd.hello", {}, timeout_s=HELLO_TIMEOUT_S)
    print(f"memd {one_line(str(hello['server_version']))} {what} (process {hello['pid']})")
    note(versions.warning(str(hello["server_version"])))
    return exits.OK


PING_TIMEOUT_S = 3.0  # the daemon promises 1; one that does not answer in three is stuck


def filters(args: Namespace, workspace: str, *, path: str = "path") -> dict[str, object]:
    """Return the filters that were given, as a request has them.

    *path*: what --path is called there, which has another name where `path` is the note.
    """
    given = filters_of(args)
    if typed := given.pop("path", None):
        globs = relative_path.globs(typed, workspace)
        given |= {path: globs} if globs else {}
    return given

"""Entry point of memctl: runs one command and turns errors into a line on stderr and an exit code.

Imports only the module of that command, and for a hook nothing else. memctl.exits has the exit codes.
"""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TextIO

from memctl import __version__, exits
from memctl.commands import COMMANDS, RENAMED
from memctl.environment import use_utf8

if TYPE_CHECKING:
    from argparse import Namespace

# Of stdout that is a file, or closed.
_OUTPUT_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; used by the console script and `python -m memctl`."""
    if argv is None:
        use_utf8()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["hook"] and not {"-h", "--help"}.intersection(words):
        try:  # silently even if this installation is broken
            from memctl.commands.hook import main as hook

            hook(words[1:])
        finally:
            os._exit(exits.OK)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed by the caller: the socket would get its number
            # What is written to stdout fails as it would without this.
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, open(opened, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # On a terminal with another encoding, show \u2013 instead of failing. A pipe gets the bytes of
            # names as they are on the disk.
            encoding = None
            if stream.isatty() and "utf8" in sys._xoptions:  # noqa: SLF001 - documented, and no other place tells
                from locale import getencoding

                encoding = getencoding()  # `use_utf8` has set it aside
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    try:
        status = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        _drop(sys.stdout)
        return exits.PIPE
    except OSError as error:
        if error.errno not in _OUTPUT_ERRORS:
            return _internal()
        _drop(sys.stdout)
        return _fail(f"writing the output failed: {error.strerror}", exits.STORAGE)
    except Exception:  # noqa: BLE001 (Python's exit code 1 would mean "no hits" to a script)
        return _internal()
    return status


def _internal() -> int:
    """Report the exception that is being handled, which is a bug or the answer of an older daemon."""
    import traceback

    from memctl.client import older_daemon
    from memctl.versions import older_line

    if holder := older_daemon():
        return _fail(f"cannot read memd's answer: {older_line(holder)}", exits.INTERNAL)

    traceback.print_exc()
    return exits.INTERNAL


def _run(argv: list[str]) -> int:
    from memctl.arguments import TOPICS, overview
    from memctl.text import any_text

    name = argv[0] if argv else ""
    if not name:
        print(overview(), end="", file=sys.stderr)
        return exits.USAGE
    if name in {"-h", "--help", "help"}:
        name = argv[1] if argv[1:] else ""
        if name in COMMANDS:
            return _run([name, "--help"])
        if not name or name in TOPICS or name.startswith("-"):
            print(TOPICS.get(name) or overview(), end="")
            return exits.OK
    if name in {"-V", "--version"}:
        return _versions()
    if name not in COMMANDS:
        return _fail(_no_command(any_text(name)), exits.USAGE)
    return _command(name, argv[1:])


def _no_command(name: str) -> str:
    if name in RENAMED:
        return f"{name} {RENAMED[name]}"
    if name.startswith("-"):
        return f"{name} is before the command: memctl COMMAND {name} (memctl --help lists them)"
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"no command {name!r}{hint} (memctl --help lists them)"


def _versions() -> int:
    """Print the versions of memctl and of the running daemon, which is not started for it."""
    from memctl import versions
    from memctl.client import Client, NoDaemonError, RpcError, Unreachable
    from memctl.commands import common
    from memctl.text import safe

    print(f"memctl {__version__}")
    try:
        with Client.connect(timeout_s=common.AT_ONCE_S) as client:
            daemon_version = str(client.call("memd.hello", {}, timeout_s=common.AT_ONCE_S)["server_version"])
    except NoDaemonError:
        print("memd   not running")
        return exits.OK
    except (Unreachable, RpcError) as error:
        print(f"memd   unknown: {safe(str(error))}")
        return exits.OK
    print(f"memd   {daemon_version} (running)")
    common.note(versions.warning(daemon_version))
    return exits.OK


def _command(name: str, argv: list[str]) -> int:
    from memctl.arguments import named_parameter, parse, parser_of
    from memctl.client import Client, RpcError, Unreachable
    from memctl.exits import CommandError
    from memctl.paths import PathError

    module = import_module(f"memctl.commands.{name}")
    parser = parser_of(name, module.arguments)
    try:
        args = parse(parser, argv)
    except SystemExit as leaving:  # argparse has printed the error or the help
        return int(leaving.code or 0)
    run: Callable[[Namespace], int] = module.run
    try:
        return run(args)
    except CommandError as error:
        return _fail(str(error), error.status)
    except PathError as error:
        return _fail(str(error), exits.UNSAFE)
    except Unreachable as error:
        return _fail(str(error), exits.UNREACHABLE)
    except RpcError as error:
        from contextlib import suppress

        from memctl.versions import warning, with_install_line

        hint = None  # the daemon's version, if it is another one than memctl's
        if error.code in {"MEMD_METHOD", "MEMD_INVALID"} and "older than this memctl" not in str(error):
            with suppress(RpcError, Unreachable), Client.connect(timeout_s=1.0) as daemon:
                hint = warning(str(daemon.call("memd.hello", timeout_s=1.0)["server_version"]))
        told = with_install_line(named_parameter(str(error), parser))
        return _fail("\n".join(filter(None, [told, hint])), exits.of(error.code))


def _fail(message: str, status: int) -> int:
    from memctl.text import safe

    try:
        print(f"memctl: {safe(message)}", file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError:  # stderr is a file on a full disk; the exit code still tells
        _drop(sys.stderr)
    return status


def _drop(stream: TextIO) -> None:
    """Keep the interpreter from writing what is left in *stream* again at its end."""
    from contextlib import suppress

    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == "__main__":
    sys.exit(main())

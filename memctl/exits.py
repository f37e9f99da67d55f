"""The exit codes of memctl, and the table from memd's error codes to exit codes.

The first follow grep (0 found, 1 nothing found, 2 wrong usage); then each class of error has a code.
"""

from memctl import paths

OK = 0
NONE = 1  # nothing found
USAGE = 2  # an option or parameter is wrong
UNREACHABLE = 3  # no daemon, and none could be started
WORKSPACE = 4  # no workspace here, or it is not registered
NOT_FOUND = 5  # the named source, chunk or entry does not exist
BUSY = 6  # a limit or a deadline was reached: try again
REFUSED = 7  # unsafe path, a secret in the text, or an entry that was changed by hand
CONFIG = 8  # a configuration file is wrong
UNHEALTHY = 9  # `health` found something broken
INCOMPLETE = 10  # nothing found, but not everything could be searched: stderr has the reason
BY_HAND = 11  # a file that memctl does not edit: the lines for it are printed
INTERNAL = 70  # EX_SOFTWARE of sysexits.h: a bug
UNSAFE = paths.EXIT_UNSAFE  # a folder or path must be fixed first
STORAGE = 74  # EX_IOERR of sysexits.h: the disk is full, or reading or writing failed
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
PIPE = 141  # 128 + SIGPIPE: the reader of the output has ended

OF_CODE = {
    "MEMD_INVALID": USAGE,
    "MEMD_METHOD": USAGE,
    "MEMD_STOPPING": UNREACHABLE,
    "MEMD_RUNNING": UNREACHABLE,
    "MEMD_WORKSPACE": WORKSPACE,
    "MEMD_NOT_FOUND": NOT_FOUND,
    "MEMD_BUSY": BUSY,
    "MEMD_TIMEOUT": BUSY,
    "MEMD_UNSAFE": REFUSED,
    "MEMD_NESTED": REFUSED,
    "MEMD_SECRET": REFUSED,
    "MEMD_CHANGED": REFUSED,
    "MEMD_CONFIG": CONFIG,
    "MEMD_EMBEDDER": UNHEALTHY,
    "MEMD_STORE": UNHEALTHY,
    "MEMD_INTERNAL": INTERNAL,
    "MEMD_NOSPACE": STORAGE,
    "MEMD_IO": STORAGE,
    "MEMD_CORRUPT": STORAGE,
}

HELP = """\
exit codes:
  0  done, hits found          5  what was named is not there
  1  no hits                   6  busy or too slow: try again
  2  wrong usage               7  refused (unsafe, secret, changed)
  3  daemon not reachable      8  configuration is wrong
  4  no such workspace         9  not healthy
  10 no hits, but not everything could be searched (yet): stderr says what was missing
  11 a file must be edited by hand: add or remove the lines that are printed
  70 internal error    74 storage failed    130 interrupted    141 the reader of the output has ended
  78 one of memd's folders or paths must be fixed first"""


class CommandError(Exception):
    """The command can't be executed as typed; *status* is the exit code."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.status = status


def of(code: str) -> int:
    """Return the exit code for an error *code* of memd; INTERNAL for unknown codes."""
    return OF_CODE.get(code, INTERNAL)

"""Links of a terminal (OSC 8): a path that a click opens, in the program that the user chose.

https://gist.github.com/egmontkob/eb114294efbcd5adb1944c9f3cb5feda describes the sequence; the forms and the
names of their fields are those of ripgrep's --hyperlink-format.
"""

from memctl.exits import CommandError

# The host of file:// stays empty: the file is on the machine whose terminal this is, or the link is no use.
FORMS = {
    "none": "",
    "file": "file://{path}",
    "vscode": "vscode://file{path}:{line}",
    "vscodium": "vscodium://file{path}:{line}",
    "cursor": "cursor://file{path}:{line}",
    "zed": "zed://file{path}:{line}",
    "textmate": "txmt://open?url=file://{path}&line={line}",
    "macvim": "mvim://open?url=file://{path}&line={line}",
}
VARIABLE = "MEMCTL_HYPERLINK_FORMAT"


def form_of(named: str) -> str:
    """
    Return the form of a link by its name, or the form that was written out.

    Raises:
        CommandError: it is neither.
    """
    if named in FORMS:
        return FORMS[named]
    if "://" in named and "{path}" in named and named.isprintable() and named.isascii():
        return named
    raise CommandError(
        f"{VARIABLE} is {named!r}: one of {', '.join(FORMS)} is possible, or a form with {{path}} and "
        "{line}, as my-editor://open?file={path}&line={line}"
    )


def link(form: str, path: str, line: int, text: str) -> str:
    """Return *text* as a link to a line of the file at *path*, an absolute one."""
    from urllib.parse import quote

    target = form.replace("{path}", quote(path, errors="replace")).replace("{line}", str(line))
    return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"

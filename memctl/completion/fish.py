"""The completion script for fish, for its folder of completions."""

from memctl.completion.pages import HELP, VERSION, Page, Value, flat

_HEAD = r"""# Completion of memctl for fish. Made by: memctl completions fish
# Keep it: memctl completions fish > ~/.config/fish/completions/memctl.fish

# Is the command line at this command, and this action of it?
function __memctl_at
    set -l typed (commandline -opc)
    set -e typed[1]
    test (count $typed) -ge (count $argv); or return 1
    for at in (seq (count $argv))
        test $typed[$at] = $argv[$at]; or return 1
    end
end

# And does what comes next belong to it directly?
function __memctl_next
    test (count (commandline -opc)) -eq (math 1 + (count $argv)); or return 1
    test (count $argv) -eq 0; or __memctl_at $argv
end

complete -c memctl -f
"""


def script(commands: list[Page]) -> str:
    """Return the script that completes *commands*."""
    lines = [_action((), page.path[0], page.help) for page in commands]
    lines.append(_action((), "help", "say more about a command"))
    lines += [_action(("help",), page.path[0], page.help) for page in commands]
    for flags, text in ((HELP, "show the commands"), (VERSION, "print the versions of memctl and memd")):
        lines.append(f"complete -c memctl -n __memctl_next {_spelled(flags)} -d {_quoted(text)}")
    for page in flat(commands):
        for option in page.options:
            value = ""
            if option.value and not option.value.optional:
                # -x: a value must follow, and no file fits.
                value = " -r -F" if option.value.kind == "file" else f" -x {_values(option.value)}".rstrip()
            spelled = f"{_spelled(option.flags)}{value}"
            lines.append(f"complete -c memctl -n {_at(page.path)} {spelled} -d {_quoted(option.help)}")
        lines += [_action(page.path, action.path[-1], action.help) for action in page.actions]
        lines += [f"complete -c memctl -n {_at(page.path)} {_values(place)}" for place in page.places if
                  place.kind != "text"]  # fmt: skip
    return "\n".join([_HEAD, *lines, ""])


def _spelled(flags: tuple[str, ...]) -> str:
    return " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in flags)


def _values(value: Value) -> str:
    offered = {
        "folder": "-a '(__fish_complete_directories)'",
        "file": "-F",
        "field": "-a '(memctl fields --offers (commandline -ct) 2>/dev/null)'",
        "tag": "-a '(memctl fields tags --offers (commandline -ct) 2>/dev/null)'",
        "choice": f"-a {_quoted(' '.join(value.choices))}",
        "text": "",
    }
    return offered[value.kind]


def _action(path: tuple[str, ...], name: str, text: str) -> str:
    where = _quoted(" ".join(("__memctl_next", *path)))
    return f"complete -c memctl -n {where} -a {_quoted(name)} -d {_quoted(text)}"


def _at(path: tuple[str, ...]) -> str:
    return _quoted(" ".join(("__memctl_at", *path)))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

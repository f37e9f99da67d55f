"""The completion script for zsh.

A script for a folder of $fpath, which can be sourced as well.
"""

from memctl.completion.pages import HELP, VERSION, Option, Page, Value, flat

_SCRIPT = r"""#compdef memctl
# Completion of memctl for zsh. Made by: memctl completions zsh
# Use it now, after compinit: source <(memctl completions zsh)

# Two underscores: "memctl fields" has the function _memctl_fields.
_memctl__offered() {
    local -a offered
    offered=(${(f)"$(memctl fields $1 --offers "$PREFIX" 2>/dev/null)"})
    shift
    compadd -Q "$@" -- "${(@q)offered}"
}
_memctl__offered_fields() { _memctl__offered "" -S ""; }
_memctl__offered_tags() { _memctl__offered tags; }

@functions@

if [ "$funcstack[1]" = _memctl ]; then
    _memctl "$@"
else
    compdef _memctl memctl
fi
"""
_PARENT = r"""@name@() {
    local curcontext=$curcontext state line ret=1
    typeset -A opt_args
    _arguments -C -S @specs@ \
        '1: :->action' \
        '*:: :->rest' && ret=0
    case $state in
        action)
            local -a actions
            actions=(
@actions@
            )
            _describe -t commands 'command' actions && ret=0 ;;
        rest)
            (( $+functions[@name@_$words[1]] )) && @name@_$words[1] && ret=0 ;;
    esac
    return ret
}"""
_HELP = Option(HELP, "show the commands", None, repeatable=False)
_VERSION = Option(VERSION, "print the versions of memctl and memd", None, repeatable=False)


def script(commands: list[Page]) -> str:
    """Return the script that completes *commands*."""
    helping = Page(("help",), "say more about a command", (), (), tuple(commands))
    root = Page((), "", (_HELP, _VERSION), (), (*commands, helping))
    functions = [_function(page) for page in (*flat(commands), root)]
    # "help" offers the commands; what would follow one there does not concern it.
    functions.append(_function(helping))
    return _SCRIPT.replace("@functions@", "\n\n".join(functions))


def _function(page: Page) -> str:
    name = "_".join(("_memctl", *page.path))
    specs = [spec for option in page.options for spec in _specs(option)]
    if not page.actions:
        for number, place in enumerate(page.places, 1):
            where = "*" if place.many else str(number)
            specs.append(_quoted(f"{where}{'::' if place.optional else ':'}{_asked(place)}"))
        return f"{name}() {{\n    _arguments -S {_continued(specs)}\n}}"
    actions = "\n".join(
        " " * 16 + _quoted(f"{action.path[-1]}:{_escaped(action.help, ':')}") for action in page.actions
    )
    text = _PARENT.replace("@specs@", _continued(specs)).replace("@actions@", actions)
    return text.replace("@name@", name)


def _continued(specs: list[str]) -> str:
    return " \\\n        ".join(["", *specs]).lstrip(" ")


def _specs(option: Option) -> list[str]:
    """Return a spec for each spelling, which excludes the others unless it may be repeated."""
    others = "*" if option.repeatable else f"({' '.join(option.flags)})" if len(option.flags) > 1 else ""
    help_ = f"[{_escaped(option.help, '[]:')}]"
    specs = []
    for flag in option.flags:
        sign = ("=" if flag.startswith("--") else "+") if option.value else ""
        colon = "::" if option.value and option.value.optional else ":"
        value = f"{colon}{_asked(option.value)}" if option.value else ""
        specs.append(_quoted(f"{others}{flag}{sign}{help_}{value}"))
    return specs


def _asked(value: Value) -> str:
    # For free text an empty list: " " would be a message, which keeps zsh from completing an option.
    actions = {
        "folder": "_files -/", "file": "_files", "text": "()",
        "field": "_memctl__offered_fields", "tag": "_memctl__offered_tags",
        "choice": f"({' '.join(value.choices)})",
    }  # fmt: skip
    return f"{_escaped(value.name, ':')}:{actions[value.kind]}"


def _escaped(text: str, signs: str) -> str:
    return "".join(f"\\{sign}" if sign in f"\\{signs}" else sign for sign in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"

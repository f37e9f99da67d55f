"""The completion script for bash.

A script for bash 3.2 (macOS) and newer, without the package bash-completion.
"""

from shlex import quote

from memctl.completion.pages import HELP, VERSION, Page, Value, flat

_SCRIPT = r"""# Completion of memctl for bash. Made by: memctl completions bash
# Use it now: source <(memctl completions bash)

# What may follow the page $1.
_memctl_page() {
    options="" valued="" places=() rest="" actions=""
    case $1 in
@pages@
    esac
}

# Offer what the option $1 of this page takes.
_memctl_value() {
    case "$page $1" in
@values@
    esac
}

# Offer the names of files on stdin. Bash quotes what it is told to be names; 3.2 cannot be told.
_memctl_names() {
    local offered
    compopt -o filenames 2>/dev/null
    while IFS= read -r offered; do
        offered=${offered#"$known"}
        ((BASH_VERSINFO[0] > 3)) || printf -v offered %q "$offered"
        COMPREPLY+=("$prefix$offered")
    done
}

_memctl_offer() {
    local offered key=""
    case $1 in
        folder) _memctl_names < <(compgen -d -- "$cur") ;;
        file) _memctl_names < <(compgen -f -- "$cur") ;;
        field|tag)
            if [[ $1 == tag ]]; then key=tags; else compopt -o nospace 2>/dev/null; fi
            while IFS= read -r offered; do
                # A note's value is anybody's text, and bash inserts it as it is: one word, no code.
                offered=${offered#"$known"}
                if [[ $cur == *[\'\"]* ]]; then
                    [[ $offered != *[\'\"\$\`\!\\]* ]] || continue
                else
                    printf -v offered %q "$offered"
                fi
                COMPREPLY+=("$prefix$offered")
            done < <(memctl fields $key --offers "${cur//\\/}" 2>/dev/null) ;;
        text) ;;
        *)
            while IFS= read -r offered; do
                COMPREPLY+=("$prefix$offered")
            done < <(compgen -W "$1" -- "$cur") ;;
    esac
}

_memctl() {
    local page="" place=0 option="" ended="" prefix="" known="" line=$COMP_LINE word cur i last=-1
    local words=() options valued places rest actions
    COMPREPLY=()
    _memctl_page ""
    # "x:y" is three words, as ":", "=" and "@" are COMP_WORDBREAKS, and only what is behind them is replaced,
    # of "@" itself, too.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ $last != -1 && $line != [[:space:]]* && ( $word == [:=@]* || ${words[last]} == *[:=@] ) ]]; then
            known=${words[last]}
            [[ $word != [:=@]* ]] || known+=$word
            words[last]+=$word
        else
            known=""
            words[++last]=$word
        fi
        line=${line#*"$word"}
    done
    cur=${words[last]}
    for ((i = 1; i < last; i++)); do
        word=${words[i]}
        if [[ -n $option ]]; then option=""; continue; fi
        if [[ -n $ended ]]; then place=$((place + 1)); continue; fi
        case $word in
            --) ended=1 ;;
            -*) [[ " $valued " == *" $word "* ]] && option=$word ;;
            *)
                if [[ -n $actions && " $actions " == *" $word "* ]]; then
                    page=${page:+$page }$word
                    _memctl_page "$page"
                else
                    actions=""
                    place=$((place + 1))
                fi ;;
        esac
    done
    if [[ -z $option && -z $ended && $cur == --*=* ]]; then
        option=${cur%%=*} prefix=${cur%%=*}= cur=${cur#*=}
        [[ $known != "$prefix"* ]] || known=${known#"$prefix"} prefix=""
    fi
    known=${known//\\/} known=${known%@}
    if [[ -n $option ]]; then
        _memctl_value "$option"
    elif [[ -z $ended && $cur == -* ]]; then
        _memctl_offer "$options"
    elif [[ -n $actions ]]; then
        _memctl_offer "$actions"
    elif ((place < ${#places[@]})); then
        _memctl_offer "${places[place]}"
    elif [[ -n $rest ]]; then
        _memctl_offer "$rest"
    fi
}

complete -F _memctl memctl
"""


def script(commands: list[Page]) -> str:
    """Return the script that completes *commands*."""
    names = [page.path[0] for page in commands]
    lines = [_case("", [*HELP, *VERSION], [], (), [*names, "help"]), _case("help", [], [], (), names)]
    values = []
    for page in flat(commands):
        flags = [flag for option in page.options for flag in option.flags]
        # The value of such an option may be missing: the next word may be anything.
        valued = [
            flag
            for option in page.options
            if option.value and not option.value.optional
            for flag in option.flags
        ]
        name = " ".join(page.path)
        lines.append(_case(name, flags, valued, page.places, [action.path[-1] for action in page.actions]))
        for option in page.options:
            if option.value and option.value.kind != "text":
                patterns = "|".join(quote(f"{name} {flag}") for flag in option.flags)
                values.append(f"        {patterns}) _memctl_offer {_offer(option.value)} ;;")
    return _SCRIPT.replace("@pages@", "\n".join(lines)).replace("@values@", "\n".join(values))


def _case(
    name: str, options: list[str], valued: list[str], places: tuple[Value, ...], actions: list[str]
) -> str:
    single = [_offer(place) for place in places if not place.many]
    many = [_offer(place) for place in places if place.many]
    parts = [f"options={quote(' '.join(options))}"]
    parts += [f"valued={quote(' '.join(valued))}"] if valued else []
    parts += [f"places=({' '.join(single)})"] if single else []
    parts += [f"rest={many[-1]}"] if many else []
    parts += [f"actions={quote(' '.join(actions))}"] if actions else []
    return f"        {quote(name)}) {' '.join(parts)} ;;"


def _offer(value: Value) -> str:
    return quote(" ".join(value.choices) or value.kind)

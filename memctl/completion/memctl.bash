# Completion of memctl for bash 3.2 (macOS) and newer, without the package bash-completion.
# Use it now: source <(memctl completions bash)

_memctl() {
    local words=() word line=$COMP_LINE known="" last=-1 kind prefix offers offered
    COMPREPLY=()
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
    known=${known//\\/} known=${known%@}
    word=${words[last]}
    offers=$(memctl completions bash -- "${words[@]:1}" 2>/dev/null)
    read -r kind prefix <<< "$offers"
    case $kind in
        folder) offers=$(compgen -d -P "$prefix" -- "${word#"$prefix"}") ;;
        file) offers=$(compgen -f -P "$prefix" -- "${word#"$prefix"}") ;;
        *) offers=${offers#"$kind"} ;;
    esac
    while IFS= read -r offered; do
        [[ -n $offered ]] || continue
        # What is offered may be anybody's text, a note's or a file's name, and bash inserts it as it is: it
        # becomes one word, and no code. Bash quotes what it is told to be names; 3.2 cannot be told.
        offered=${offered#"$known"}
        if [[ $kind == f* ]]; then
            compopt -o filenames 2>/dev/null
            ((BASH_VERSINFO[0] > 3)) || printf -v offered %q "$offered"
        elif [[ $word == *[\'\"]* ]]; then
            [[ $offered != *[\'\"\$\`\!\\]* ]] || continue
        else
            printf -v offered %q "$offered"
        fi
        [[ $offered != *= ]] || compopt -o nospace 2>/dev/null
        COMPREPLY+=("$offered")
    done <<< "$offers"
}

complete -F _memctl memctl

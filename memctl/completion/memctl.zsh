#compdef memctl
# Completion of memctl for zsh, for a folder of $fpath.
# Use it now, after compinit: source <(memctl completions zsh)

_memctl() {
    local -a offers how
    local kind prefix
    offers=("${(@f)$(memctl completions zsh -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
    read -r kind prefix <<< "$offers[1]"
    shift offers
    (( $#offers )) || [[ $kind == f* ]] || return 1
    [[ -z $prefix ]] || compset -P "$prefix"
    case $kind in
        folder) _files -/ ;;
        file) _files ;;
        # Anybody's text, a note's, which becomes one word, and no code.
        text)
            [[ $offers[1] != *= ]] || how=(-S "")
            compadd -Q "$how[@]" -- "${(@q)offers}" ;;
        *) _describe -t commands memctl offers ;;
    esac
}

if [ "$funcstack[1]" = _memctl ]; then
    _memctl "$@"
else
    compdef _memctl memctl
fi

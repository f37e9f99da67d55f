# Completion of memctl for fish, for its folder of completions.
# Keep it: memctl completions fish > ~/.config/fish/completions/memctl.fish

function __memctl_offers
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -e words[1]
    set -l offers (memctl completions fish -- $words "$typed" 2>/dev/null)
    set -l kind (string split ' ' -- $offers[1])
    set -e offers[1]
    if contains -- "$kind[1]" file folder
        # Of a command that there is not, fish completes the names of files.
        set -l names (complete -C "__memctl_none "(string replace -- "$kind[2]" '' "$typed"))
        test $kind[1] = file; or set names (string match -- '*/' $names)
        printf '%s\n' "$kind[2]"$names
    else
        printf '%s\n' $offers
    end
end

complete -c memctl -f -a '(__memctl_offers)'

"""Shell completion of memctl.

`pages` reads commands and options from the parsers; `bash`, `zsh` and `fish` write the script of their shell.
"""

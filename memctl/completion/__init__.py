"""How does a shell know what can be typed after memctl?

`pages` reads it off the parsers; `bash`, `zsh` and `fish` write it down in their shell's language.
"""

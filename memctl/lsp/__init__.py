"""The language server of memctl: links, related notes and search where people write, in any editor.

It holds the open documents and asks the daemon for the rest; it writes to no note. `server` handles the
protocol; `documents` and `positions` hold the texts; `workspace` calls the daemon; `completion`,
`navigation`, `rename` and `actions` answer; `settings` has what the user of an editor can choose.
"""

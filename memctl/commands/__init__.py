"""The table of commands. Each command is the module of its name in this package.

Importing the table imports no command: only the module of the typed command is loaded. Each module defines
`arguments(parser)` and `run(args) -> exit code`.
"""

# command: one line of help; in the order of the help page
COMMANDS = {
    "init": "make a folder searchable",
    "search": "find chunks by meaning and by words",
    "timeline": "list the hits of a query by day",
    "find": "search as you type, with a preview of each hit",
    "open": "open a hit of the last search in your editor",
    "recall": "print what is known about something, ready for a prompt",
    "why": "explain why a note is not among the hits",
    "similar": "find notes that say nearly the same",
    "get": "print a note or some of its lines",
    "links": "list the links from and to a note, and what is broken",
    "ls": "list what is indexed, and what is skipped and why",
    "fields": "list the keys and values of front matter, for --field",
    "add": "write a memory entry",
    "forget": "delete a memory entry and every trace of it",
    "review": "list what agents wrote, the oldest first, to forget or correct it",
    "journal": "show who wrote, revised and forgot what, and when; or what one note supersedes",
    "import": "bring conversations of other programs into the archive",
    "index": "bring the index up to date and wait for it",
    "sync": "wait until all saved notes are searchable",
    "pause": "pause embedding for a while, or resume it; words are still indexed",
    "watch": "follow events, one a line",
    "status": "show the state of the daemon and its workspaces, or what a bug report needs",
    "log": "show the daemon's own log",
    "health": "run a real search; exit 0 if all is well",
    "eval": "measure how good search is on your notes",
    "check": "compare the index with itself and with the notes; repair it",
    "ping": "ask whether the daemon answers",
    "workspaces": "list, add, remove or configure workspaces",
    "team": "publish workspaces to a team's store, and compare what it has",
    "models": "download, list, use or remove models",
    "hook": "answer a hook of an agent's client: add recalled notes to its prompt",
    "agents": "register memctl with the clients of agents: Claude Code, Codex, …",
    "mcp": "serve agents: an MCP server on stdin and stdout",
    "lsp": "serve editors: a language server on stdin and stdout",
    "editors": "print the folder of an editor's plugin",
    "completions": "print a completion script for your shell",
    "start": "start the daemon",
    "stop": "stop the daemon",
    "restart": "stop the daemon and start it again",
    "service": "install, remove or show the systemd user units",
    "uninstall": "remove what memd put on this machine; never a note",
}

# explained on the page of `memctl --help`, which fits on a screen of 40 lines; the others are named there
EVERYDAY = (
    *("init", "search", "find", "open", "recall", "why", "similar", "get", "links", "add", "forget"),
    *("import", "status", "check", "agents", "service"),
)

_BY_HAND = (
    "is gone: notes are backed up with their folders; docs/installing.md names the three files of settings"
)
# command of an earlier version: what became of it
RENAMED = {
    "backup": _BY_HAND,
    "debug": "is now: memctl status --debug",
    "history": "is now: memctl journal PATH",
    "man": "is now: memctl help COMMAND",
    "restore": _BY_HAND,
    "resume": "is now: memctl pause --off",
    "version": "is now: memctl --version",
}

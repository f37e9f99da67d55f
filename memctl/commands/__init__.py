"""The table of commands. Each command is the module of its name in this package.

Importing the table imports no command: only the module of the typed command is loaded. Each module defines
`arguments(parser)` and `run(args) -> exit code`.
"""

# command: one line of help; in the order of the help page
COMMANDS = {
    "init": "make a folder searchable",
    "search": "find chunks by meaning and by words",
    "find": "search as you type, with a preview of each hit",
    "open": "open a hit of the last search in your editor",
    "recall": "print what is known about something, ready for a prompt",
    "why": "explain why a note is not among the hits",
    "similar": "find notes that say nearly the same",
    "get": "print a note or some of its lines",
    "ls": "list what is indexed, and what is skipped and why",
    "add": "write a memory entry",
    "history": "show what a note supersedes, and what supersedes it",
    "forget": "delete a memory entry and every trace of it",
    "journal": "show who wrote, revised and forgot what, and when",
    "import": "bring conversations of other programs into the archive",
    "index": "bring the index up to date and wait for it",
    "sync": "wait until all saved notes are searchable",
    "pause": "pause embedding for a while; words are still indexed",
    "resume": "resume embedding",
    "watch": "follow events, one a line",
    "status": "show the state of the daemon and its workspaces",
    "log": "show the daemon's own log",
    "health": "run a real search; exit 0 if all is well",
    "eval": "measure how good search is on your notes",
    "check": "compare the index with itself and with the notes; repair it",
    "debug": "print what a bug report needs",
    "ping": "ask whether the daemon answers",
    "workspaces": "list, add, remove or configure workspaces",
    "models": "download, list, use or remove models",
    "hook": "answer a hook of an agent's client: add recalled notes to its prompt",
    "agents": "register memctl with the clients of agents: Claude Code, Codex, …",
    "mcp": "serve agents: an MCP server on stdin and stdout",
    "editors": "print the folder of an editor's plugin",
    "man": "show the manual page of memctl or of a command",
    "completions": "print a completion script for your shell",
    "start": "start the daemon",
    "stop": "stop the daemon",
    "restart": "stop the daemon and start it again",
    "service": "install, remove or show the systemd user units",
    "uninstall": "remove what memd put on this machine; never a note",
    "version": "print the versions of memctl and of the running daemon",
}

"""The commands of memctl, each with its line of help and a module of its name.

A table and no imports: only the module of the command that was typed is loaded. Each module has
`arguments(parser)` and `run(args) -> exit code`.
"""

# command: (module, one line of help); in the order of the help page
COMMANDS = {
    "init": "make a folder searchable",
    "search": "find chunks by meaning and by words",
    "find": "search as you type, with a preview of each hit",
    "open": "open a hit of the last search in your editor",
    "recall": "print what is known about something, ready for a prompt",
    "why": "say why a note is not among the hits",
    "similar": "find what other notes say nearly the same",
    "get": "print a note or some of its lines",
    "add": "write a memory entry",
    "history": "show what a note supersedes, and what supersedes it",
    "forget": "delete a memory entry and every trace of it",
    "journal": "show who wrote, revised and forgot what, and when",
    "import": "bring conversations of other programs into the archive",
    "index": "bring the index up to date and wait for it",
    "sync": "wait until everything that is saved is searchable",
    "pause": "hold embedding for a while; words are indexed all the same",
    "resume": "let embedding go on",
    "watch": "follow what happens, an event a line",
    "status": "show what the daemon knows and does",
    "log": "show the daemon's own log",
    "health": "run a real search; exit 0 if all is well",
    "eval": "measure how good search is on your notes",
    "check": "compare the index with itself and with the notes; repair it",
    "debug": "print what a bug report needs",
    "ping": "ask whether the daemon answers",
    "workspaces": "list, add, remove or configure workspaces",
    "models": "download, list, use or remove models",
    "hook": "answer a hook of an agent's client: recall into its prompt",
    "agents": "register memctl with the clients of agents: Claude Code, Codex, …",
    "mcp": "serve agents: an MCP server on stdin and stdout",
    "editors": "print the folder of an editor's plugin",
    "completions": "print a completion script for your shell",
    "start": "start the daemon",
    "stop": "stop the daemon",
    "restart": "stop the daemon and start it again",
    "service": "install, remove or show the systemd user units",
    "uninstall": "remove what memd put on this machine; never a note",
    "version": "print the versions of memctl and of the running daemon",
}

"""Which commands are there, and which module has each?

A table and no imports: only the module of the command that was typed is loaded. Each module has, for a
command NAME ("-" as "_"), `NAME_arguments(parser)` and `run_NAME(args) -> exit code`.
"""

# command: (module, one line of help); in the order of the help page
COMMANDS = {
    "init": ("setup", "make a folder searchable"),
    "search": ("find", "find chunks by meaning and by words"),
    "recall": ("find", "print what is known about something, ready for a prompt"),
    "why": ("why", "say why a note is not among the hits"),
    "similar": ("why", "find what other notes say nearly the same"),
    "get": ("find", "print a note or some of its lines"),
    "add": ("write", "write a memory entry"),
    "forget": ("write", "delete a memory entry and every trace of it"),
    "index": ("setup", "bring the index up to date and wait for it"),
    "sync": ("follow", "wait until everything that is saved is searchable"),
    "watch": ("follow", "follow what happens, an event a line"),
    "status": ("status", "show what the daemon knows and does"),
    "log": ("log", "show the daemon's own log"),
    "health": ("see", "run a real search; exit 0 if all is well"),
    "eval": ("eval", "measure how good search is on your notes"),
    "check": ("see", "compare the index with itself and with the notes; repair it"),
    "debug": ("report", "print what a bug report needs"),
    "ping": ("see", "ask whether the daemon answers"),
    "workspaces": ("setup", "list, add, remove or configure workspaces"),
    "mcp": ("write", "serve agents: an MCP server on stdin and stdout"),
    "editors": ("editors", "print the folder of an editor's plugin"),
    "completions": ("completions", "print a completion script for your shell"),
    "start": ("life", "start the daemon"),
    "stop": ("life", "stop the daemon"),
    "restart": ("life", "stop the daemon and start it again"),
    "service": ("life", "install, remove or show the systemd user units"),
    "uninstall": ("life", "remove what memd put on this machine; never a note"),
    "version": ("see", "print the versions of memctl and of the running daemon"),
}

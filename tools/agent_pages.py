"""Writes a page of docs/ for each client of agents that `memctl agents install` registers memd with.

The files and their contents are those that the command writes into an empty home. OpenClaw, which gets a plugin,
has a page of its own.

    python -m tools.agent_pages
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memctl.agents.clients import BOTH, CLIENTS, START, AgentClient, Run
from memctl.agents.edits import Target, WholeFile
from tools.mcp_tools import TOOLS

ROOT = Path(__file__).parents[1]
COMMAND = ".venv/bin/python -m tools.agent_pages"
MEMCTL = "/home/me/.local/bin/memctl"
HOME = "/home/me"
# What the clients' own variables move, and what the pages therefore must not depend on.
_VARIABLES = (
    "CLAUDE_CONFIG_DIR",
    "CLINE_MCP_SETTINGS_PATH",
    "CODEX_HOME",
    "COPILOT_HOME",
    "OPENCODE_CONFIG_DIR",
    "XDG_CONFIG_HOME",
)
# Client → its npm package, of which tests/clients/real_clients.py runs the version in package.json.
RUN = {"claude-code": "@anthropic-ai/claude-code", "codex": "@openai/codex", "opencode": "opencode-ai"}
_FOLDERS = {
    "claude-code": """\
`CLAUDE_CONFIG_DIR` moves both files.

With `--warm`, the hook at a prompt is of the type `mcp_tool`: the client asks its server, which runs already, instead of starting a
program ([in time](agents.md#in-time)). Tried with version 2.1.197. A prompt that comes before the server is connected gets nothing;
an older client may not know the type.

The same comes as a plugin, instead of `install`, not beside it: prompts would ask twice. Its commands find `memctl` on the
client's PATH. `memctl agents plugin` prints its folder:

```
/plugin marketplace add FOLDER
/plugin install memd@memd
```

`.ci/long clients` installs it with the client's own `claude plugin`, asks with it and removes it.""",
    "claude-desktop": "On macOS it is in `~/Library/Application Support/Claude`.",
    "cline": "All of Cline's programs read this file. `CLINE_MCP_SETTINGS_PATH` names another one.",
    "copilot": "`COPILOT_HOME` moves both files. VS Code reads the second one, too.",
    "vscode": "On macOS the first is in `~/Library/Application Support/Code`. Copilot CLI reads the second one, too.",
    "codex": "`CODEX_HOME` moves both files. Codex passes only the listed variables to its servers.",
    "opencode": "`OPENCODE_CONFIG_DIR` moves both files; an `opencode.jsonc` that is there is used instead.",
}
# Why a client gets fewer hooks than others.
_NO_HOOK = {
    "antigravity": "Its hooks run at each call of the model, and get no prompt. ",
    "cline": "Its hooks are files of a fixed name, of which there may be only one. ",
    "copilot": "It drops what a hook prints at a prompt. ",
    "vscode": "It shows what a hook prints at a prompt to you, not to the model. ",
    "windsurf": "Its hooks can refuse a prompt, and add nothing to it. ",
}
_IMPORTED = ("claude-code", "codex")  # when a conversation ends


def generated() -> dict[Path, str]:
    """Return each page's path, relative to the checkout, with its text."""
    with _bare_environment():
        return {
            Path(f"docs/{client.name}.md"): _page(client)
            for client in CLIENTS.values()
            if client.name != "openclaw"
        }


def _page(client: AgentClient) -> str:
    name, title = client.name, client.title
    parts = [
        f"# {title}",
        f"Made from what `memctl agents install {name}` writes (`{COMMAND}`).",
        "## Set up",
        (
            f"```sh\nmemctl agents install {name} --dry-run    # shows the change, and writes nothing\n"
            f"memctl agents install {name} --yes        # without --yes, it shows the change and asks\n```"
        ),
        (
            "The server serves the workspace of the folder that the client starts it in; outside of any workspace, the only\n"
            "one that is registered. `-w DIR` binds it to one; prompts outside of any workspace get that one's notes, too. This is what is written into an empty home, with the path of your\n"
            "`memctl`; a file that is there keeps every other byte, and is kept as it was beside it (`.before-memd`). A file with\n"
            "comments, a link and one that you must not write are not edited: the command prints the lines, and exits with 11."
        ),
        *(_written(target) for target in client.targets(Run([MEMCTL]))),
        *([_FOLDERS[name]] if name in _FOLDERS else []),
        *([f"{_sentence(client.next_step)}."] if client.next_step else []),
        "## What the agent gets",
        (
            f"Tools: {', '.join(f'`{tool.name}`' for tool in TOOLS)}\n"
            "([what they do](agents.md#tools)). They never show notes with `private: true`, and mask keys and passwords\n"
            "([what agents may see](agents.md#what-agents-may-see))."
        ),
        _hooks(name, client.what),
        "## Check",
        (
            f"```sh\nmemctl agents list                         # {name} is installed\n"
            f'printf \'{{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}\\n\' | memctl mcp   # the tools, as the client gets them\n'
            "memctl health                              # a real search works\n```"
        ),
        *([_hook_check(name)] if client.what == BOTH else []),
        "After the agent has stored something, `memctl journal` names it, and `memctl review` lists it.",
        "## Remove",
        f"```sh\nmemctl agents uninstall {name} --yes\n```",
        (
            "This removes exactly what was added; if nothing else was changed meanwhile, the file is as it was, byte for byte.\n"
            "`memctl uninstall` lists it, too, and asks."
        ),
        "## What was tried",
        _tried(name, title),
    ]
    return "\n\n".join(parts) + "\n"


def _written(target: Target) -> str:
    path = str(target.path).replace(HOME, "~", 1)
    if isinstance(target, WholeFile):
        return f"`{path}`: a plugin of {len(target.installed(None).splitlines())} lines, which runs `memctl hook`."
    kind = "toml" if target.path.suffix == ".toml" else "json"
    return f"`{path}`:\n\n```{kind}\n{target.installed(None).rstrip()}\n```"


def _hooks(name: str, what: str) -> str:
    end = ""
    why = _NO_HOOK.get(name, "")
    if what == START:
        return (
            "A hook, without a call by the agent: at its start, a conversation gets what is due, changed or new in its project\n"
            f"([hooks](agents.md#hooks)). {why}So later the agent gets notes only if it calls a tool:\n"
            "`--instructions` tells it when."
        )
    if what != BOTH:
        return (
            f"memd registers no hooks here. {why}The agent gets notes only if it calls a tool; its instructions may say\n"
            'so, for example "Search memory before you answer a question about this project".'
        )
    if name in _IMPORTED:
        end = "\nAt its end, it is imported into the archive of its workspace ([archives](archives.md))."
    if name == "cursor":
        end = "\nWhat is added at a prompt needs a field of Cursor's answer that version 3.20 reads and its documentation does not name."
    return (
        "Hooks, without a call by the agent: at its start, a conversation gets what is due, changed or new in its project; at each prompt,\n"
        f"notes that are most probably about it, at most 500 tokens, often nothing ([hooks](agents.md#hooks)).{end}"
    )


def _hook_check(name: str) -> str:
    event = {"opencode": "prompt", "gemini": "BeforeAgent", "cursor": "beforeSubmitPrompt"}.get(
        name, "UserPromptSubmit"
    )
    return (
        f"`memctl agents doctor {name}` runs the hook as the client does, with a question made of a note's heading, and shows what\n"
        "the model would get, or why it gets nothing. The same by hand, with words of one of your notes:\n\n"
        "```sh\n"
        'printf \'{"cwd": "%s", "session_id": "%s", "prompt": "how do we bring the shop database back from the nightly dump?"}\' \\\n'
        f'  "$PWD" "$RANDOM" |\n'
        f"  MEMD_HOOK_MS=5000 memctl hook {name} {event}\n"
        "```"
    )


def _tried(name: str, title: str) -> str:
    if name not in RUN:
        return (
            f"{title} itself was not run: the file is written as its documentation describes it, and the server is tested with\n"
            "the client of MCP's own SDK."
        )
    packages = json.loads((ROOT / "tests/clients/package.json").read_text(encoding="utf-8"))["dependencies"]
    other = "\nOpenCode 2 was not run: the plugin's `setup` is tested with a stand-in for its context, written as its documentation says."
    return (
        f"`.ci/long clients` runs {title} {packages[RUN[name]]} with these files against a stand-in for its model: its calls of the tools\n"
        f"are answered, and the hooks' notes come into its prompts.{other if name == 'opencode' else ''}"
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


@contextmanager
def _bare_environment() -> Iterator[None]:
    kept = dict(os.environ)
    for name in _VARIABLES:
        os.environ.pop(name, None)
    os.environ["HOME"] = HOME
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def main() -> None:
    """Write the pages."""
    for path, text in generated().items():
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

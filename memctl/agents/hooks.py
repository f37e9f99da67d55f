"""The events of agents' clients at which memctl is run as a hook, and the hooks that were late."""

import os
from contextlib import suppress

from memctl.paths import PathError, check_private_dir, open_own, state_place

# client: event: its kind. The end of a turn is no such event: an archived conversation would answer its own
# prompts.
EVENTS = {
    "claude-code": {"SessionStart": "start", "UserPromptSubmit": "prompt", "SessionEnd": "end"},
    "codex": {"SessionStart": "start", "UserPromptSubmit": "prompt", "SessionEnd": "end"},
    "opencode": {"start": "start", "prompt": "prompt"},
    "gemini": {"SessionStart": "start", "BeforeAgent": "prompt"},
    "cursor": {"sessionStart": "start", "beforeSubmitPrompt": "prompt"},
    "copilot": {"SessionStart": "start"},  # Copilot CLI and VS Code; neither takes text at a prompt
}

# A tool of `memctl mcp` that no list names: a client's hook calls it instead of starting `memctl hook`.
TOOL = "prompt_notes"

# Set by `memctl agents doctor`: the hook's reason for its silence goes to stderr.
REASONS = "MEMD_HOOK_REASONS"

MISSED = "late-hooks"  # a file of the state folder: a line for each hook that missed its deadline
MISSED_BYTES = 4096  # arbitrary: some hundred lines; more say no more


def note_missed(at_s: float) -> None:
    """Note that a hook ended without the daemon's answer, for `missed`."""
    with suppress(OSError, PathError):
        check_private_dir(state_place())
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with os.fdopen(open_own(f"{state_place()}/{MISSED}", flags), "ab") as file:
            if os.fstat(file.fileno()).st_size < MISSED_BYTES:
                file.write(f"{at_s:.0f}\n".encode())


def missed() -> list[int]:
    """Return when hooks missed their deadline since the last call, in unix seconds: each is told once."""
    with suppress(OSError, PathError):
        check_private_dir(state_place())
        with os.fdopen(open_own(f"{state_place()}/{MISSED}", os.O_RDWR), "r+b") as file:
            raw = file.read(2 * MISSED_BYTES)
            file.truncate(0)
        return [int(line) for line in raw.split() if line.isdigit()]
    return []

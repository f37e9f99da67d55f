"""The events of agents' clients at which memctl is run as a hook."""

# client: event: its kind. The end of a turn is no such event: an archived conversation would answer its own
# prompts.
EVENTS = {
    "claude-code": {"SessionStart": "start", "UserPromptSubmit": "prompt", "SessionEnd": "end"},
    "codex": {"SessionStart": "start", "UserPromptSubmit": "prompt", "SessionEnd": "end"},
    "opencode": {"start": "start", "prompt": "prompt"},
}

# Set by `memctl agents doctor`: the hook's reason for its silence goes to stderr.
REASONS = "MEMD_HOOK_REASONS"

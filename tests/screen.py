"""A terminal for tests: a tmux server of its own with a shell in it."""

import os
import subprocess
import time

PATIENCE_S = 80
SHELL = "PS1='ready> ' exec bash --norc --noprofile"


class Screen:
    """A terminal of 24 x 80 in a tmux server of its own, with a shell in the notes."""

    def __init__(self, folder, environment, cwd):
        self._socket = str(folder / "tmux")
        self._environment = environment
        self.folder = folder
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", str(cwd), SHELL)
        self._tmux("set-option", "-s", "set-clipboard", "on")
        self.until(lambda rows: any(row.startswith("ready>") for row in rows))

    def type(self, line, *keys):
        """Type a line and Enter, or keys by tmux's names."""
        self._tmux("send-keys", *([line, "Enter"] if line else []), *keys)

    def paste(self, text):
        """Type a text, in which surrogates stand for bytes that are not UTF-8."""
        self._tmux("set-buffer", text)
        self._tmux("paste-buffer")

    def until(self, wanted):
        """Return the screen's rows once *wanted* says that they are what is waited for."""
        stop = time.monotonic() + PATIENCE_S
        while time.monotonic() < stop:
            rows = self.rows()
            if wanted(rows):
                return rows
            time.sleep(0.05)
        raise AssertionError("\n".join(rows))

    def rows(self):
        return self._tmux("capture-pane", "-p").splitlines()

    def clipboard(self):
        """Return what a program has copied last, by OSC 52."""
        return self._tmux("show-buffer")

    def resize(self, columns):
        """Make the terminal so wide; tmux tells it some time later."""
        self._tmux("resize-window", "-x", str(columns), "-y", "24")
        self.type(f"clear; until [ $(stty size | cut -d' ' -f2) = {columns} ]; do sleep 0.1; done; stty size")
        self.until(lambda rows: f"24 {columns}" in rows)

    def close(self):
        self._tmux("kill-server")

    def _tmux(self, *arguments):
        done = subprocess.run(
            ["tmux", "-S", self._socket, *arguments],
            env=self._environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout


def drawn_on(controller):
    """Return all that is drawn on a pseudo-terminal until its other side is closed; close it."""
    drawn = b""
    try:
        while part := os.read(controller, 65536):
            drawn += part
    except OSError:  # EIO: there is no other side any more
        pass
    os.close(controller)
    return drawn

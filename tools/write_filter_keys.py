"""Writes memd's table of filter keys down for `memctl`, which imports nothing of memd, and the Neovim plugin.

    python tools/write_filter_keys.py

From the root of a checkout, after each change of `memd/search/filters.py`. A test compares the files.
"""

from pathlib import Path

from memd.search.filters import FILTER_KEYS, FilterKey

ROOT = Path(__file__).parents[1]
MEMCTL = Path("memctl", "filter_keys.py")
NVIM = Path("memctl", "editors", "nvim", "lua", "memd", "filters.lua")
_PYTHON = '''"""The filter keys of a query, as memd has them; written by tools/write_filter_keys.py."""

from typing import NamedTuple


class FilterKey(NamedTuple):
    """What can be typed in front of a colon."""

    key: str
    value: str  # the kind of its value, as a help page names it
    help: str
    option: bool  # also --KEY, and a parameter of a request
    several: str  # which of several values count: "any", "all", or of days one


FILTER_KEYS = (
{keys}
)
OPTIONS = tuple(one for one in FILTER_KEYS if one.option)
REPEATABLE = ("any", "all")
'''
_LUA = """-- The filters of a query, and what completes behind each; written by tools/write_filter_keys.py.

return {{
{keys}
}}
"""


def written() -> dict[Path, str]:
    """Return each file, relative to the checkout, with what must stand there."""
    return {
        MEMCTL: _PYTHON.format(keys="\n".join(map(_python, FILTER_KEYS))),
        NVIM: _LUA.format(keys="\n".join(map(_lua, FILTER_KEYS))),
    }


def _python(one: FilterKey[object]) -> str:
    given = {
        "key": f'"{one.key}"',
        "value": f'"{one.value}"',
        "help": f'"{one.help}"',
        "option": one.option,
        "several": f'"{one.several}"',
    }
    lines = "".join(f"        {name}={value},\n" for name, value in given.items())
    return f"    FilterKey(\n{lines}    ),"


def _lua(one: FilterKey[object]) -> str:
    completes = f", completes = '{one.completes}'" if one.completes else ""
    return f"  {{ key = '{one.key}'{completes} }},"


if __name__ == "__main__":
    for path, text in written().items():
        (ROOT / path).write_text(text, encoding="utf-8")

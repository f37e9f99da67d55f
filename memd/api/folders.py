"""What a folder is, as `describes` in the front matter of its README.md or index.md says; for agents."""

from collections.abc import Iterable

from memd.index.snapshot import View
from memd.search.recall import BYTES_PER_TOKEN

DESCRIBES = "describes"
NAMES = ("index.md", "readme.md")  # the last one counts
MOST_BYTES = 30 * BYTES_PER_TOKEN
MOST_FOLDERS = 3  # of an answer; arbitrary


def described(view: View, paths: Iterable[str]) -> dict[str, str]:
    """Return folder → its line, of the nearest described folder around each of *paths*; "." is the root."""
    sources = view.snapshot.sources
    lines: dict[str, dict[int, str]] = {}
    for number, line in view.reader.values_of(DESCRIBES).items():
        folder, _, name = (sources[number].path if number in sources else "").rpartition("/")
        if line.strip() and name.casefold() in NAMES:
            lines.setdefault(folder, {})[NAMES.index(name.casefold())] = line
    found: dict[str, str] = {}
    for path in paths if lines else ():
        folder = path
        while folder and len(found) < MOST_FOLDERS:
            folder = folder.rpartition("/")[0]
            if folder in lines:
                found[folder or "."] = _cut(lines[folder][max(lines[folder])])
                break
    return found


def _cut(text: str) -> str:
    line = " ".join(text.split())
    if len(line.encode(errors="replace")) <= MOST_BYTES:
        return line
    kept = line.encode(errors="replace")[: MOST_BYTES - 3].decode(errors="ignore")
    return f"{kept.rpartition(' ')[0] or kept}\u2026"

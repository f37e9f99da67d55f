"""Maker of the kept index of a release; run once with its code: python tests/index/released/make.py.

Writes the folder of this release's schema anew: notes, and the index as a daemon leaves it. Never run for a
folder of an earlier release: what it holds was written by that release's code.
"""

import os
import shutil
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[2])]

from tests_support import Notes  # noqa: E402 - found by the path above

from memd.index.schema import VERSION  # noqa: E402

NOTES = {
    "facts/tabs.md": "---\ntitle: Code style\ntags: [style]\n---\n# Code style\n\nTabs and not spaces.\n",
    "facts/kyoto.md": "# 京都\n\n来週は金閣寺へ行きます。\n",
    "2026-05-01-standup.md": "# Standup\n\nThe parser is done.\n\n## Next\n\nThe heron by the weir.\n",
    "windows.md": "alpha\r\nbeta\r\n",
    "old/gone.md": "# Gone\n\nA note that was deleted a moment ago.\n",
    "empty.md": "",
}
WRITTEN_S = 1_777_777_777  # the times of the notes: the same wherever they are copied to


def main() -> None:
    """Make the folder."""
    folder = Path(__file__).parent / f"v{VERSION}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    notes = Notes(folder)
    for path, text in NOTES.items():
        notes.write(path, text)
        os.utime(notes.root / path, (WRITTEN_S, WRITTEN_S))
    notes.indexer.apply(list(NOTES), budget_s=60)
    notes.embed()
    notes.save({"edited.md": "the first text of a note\n"})
    notes.save({"edited.md": "the second text of a note\n"})
    notes.remove("old/gone.md", at_s=WRITTEN_S)
    notes.index.close()
    _shorten(notes.state)


def _shorten(state: Path) -> None:
    """Keep the rows of the matrix and not the zeros that are reserved behind them."""
    for matrix in state.glob("vectors.*.f32"):
        content = matrix.read_bytes().rstrip(b"\0")
        matrix.write_bytes(content + bytes(-len(content) % 256))


if __name__ == "__main__":
    main()

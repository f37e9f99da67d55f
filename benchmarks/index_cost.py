"""The cost of an index without its vectors: processor time to store texts, and bytes relative to those texts.

Counts all pages of index.db after closing, so that there is no log; the assignment of vectors to texts is
included. The table of postings and the file of codes, which are made when there is time, have separate rows,
if the index has them. The matrix is not counted.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import apsw

from benchmarks import made_index, report
from memd.index.index import DATABASE

CODES = "codes.*"  # as memd.index.index names the file


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--texts", type=Path, help="JSON lines of strings, to draw words from")
    parser.add_argument(
        "--index", type=Path, help="the folder of an index that is there; only its size is read"
    )
    parser.add_argument("--text-bytes", type=int, help="of the notes, where they are known; else the chunks'")
    options = parser.parse_args()
    with _made(options) as (folder, seconds):
        rows = sizes(folder, options.text_bytes)
    if seconds is not None:
        print(f"{options.chunks:,} chunks: {seconds:.1f} s of the processor, drawing their words included")
    report.show("index_cost", rows, options, seconds=seconds)


def sizes(folder: Path, text_bytes: int | None = None) -> list[dict[str, object]]:
    """Return the bytes of each table of the index in *folder*, and how many times the text that is."""
    database = apsw.Connection(f"file:{folder / DATABASE}?immutable=1", flags=_READ_ONLY)
    text = text_bytes or int(database.execute("SELECT sum(length(CAST(text AS BLOB))) FROM chunks").get)
    found = [
        (str(name), int(size))
        for name, size in database.execute(
            "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY sum(pgsize) DESC"
        )
    ]
    database.close()
    beside = sum(path.stat().st_size for path in folder.glob(CODES))
    whole = (folder / DATABASE).stat().st_size
    found = [("index.db", whole), ("file of codes", beside), ("both", whole + beside), *found]
    return [
        {"what": name, "kB": size // 1000, "times the text": round(size / text, 3)} for name, size in found
    ]


_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


@contextmanager
def _made(options: argparse.Namespace) -> Iterator[tuple[Path, float | None]]:
    if options.index:
        yield options.index, None
        return
    with TemporaryDirectory() as home:
        started = process_time()
        folder = made_index.ready(Path(home), options.chunks, texts=options.texts)
        yield folder, process_time() - started


if __name__ == "__main__":
    main()

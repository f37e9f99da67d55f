"""Does full-text search still rank? Some damage shows only then, and on a connection that is in use.

FTS5's own check, with or without its rank, says ok where the lengths that ranking divides by are gone.
Queries rank by memd's own count, so nothing else would notice.
"""

from memd.index.rederived import TABLES
from memd.index.view import View


def rank_all(view: View) -> None:
    """Rank the chunks of one term of each full-text table by FTS5's score.

    Raises:
        IndexDamagedError: that can't be done.
    """
    for table in TABLES:
        rank(view, table)


def rank(view: View, table: str) -> None:
    """Do it for one *table*.

    Raises:
        IndexDamagedError: as said above.
    """
    for [term] in view.reader.each(f"SELECT term FROM {TABLES[table]} WHERE term > '' LIMIT 1"):
        expression = '"' + term.replace('"', '""') + '"'
        ranked = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rank LIMIT 1"
        list(view.reader.each(ranked, (expression,)))


def without_length(view: View, table: str) -> int:
    """Return of how many chunks a full-text *table* has lost the length."""
    lost = view.reader.each(f"SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM {table}_docsize)")
    return sum(int(row[0]) for row in lost)

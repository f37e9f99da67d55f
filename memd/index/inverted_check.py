"""Does the file of postings say what FTS5 does? Every checksum, and some terms number by number."""

import random
from collections.abc import Callable

from memd.index.inverted import Inverted
from memd.index.posting_list import agree, up_to
from memd.index.view import View

# Compared with FTS5, others each time: 1 s at a million chunks. All checksums say that the file is what was
# written; this says that what was written was true.
COMPARED = 200


def false_terms(view: View, ends: Callable[[], None]) -> int:
    """Return how many terms of the file of postings are not what was written, or not what FTS5 says.

    Args:
        view: of the moment that is looked at.
        ends: called again and again; raises when there is no time left.
    """
    file = view.snapshot.postings.file
    if file is None:
        return 0
    damaged = file.damaged_terms(ends)
    if damaged:
        return damaged
    known = list(file.terms())
    count = 0
    for term in random.sample(known, min(COMPARED, len(known))):
        ends()
        count += not _agree(view, file, term)
    return count


def _agree(view: View, file: Inverted, term: tuple[str, bool]) -> bool:
    """Tell whether file and FTS5 name the same live chunks and counts."""
    stored = file.find(term)
    if stored is None:
        return False
    truth = view.reader.counted(term[0], prefix=term[1])
    columns = view.snapshot.columns
    return agree(stored.part, up_to(truth, file.last), columns)

"""What can be wrong with an index, and what mends it?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# Kind → what mends it. Those of MENDED are mended by `memd.index.repair`.
MENDED: Final[Mapping[str, str]] = {
    "words": "the table is filled again from the chunks",
    "trigrams": "the table is filled again from the chunks",
    "chunk": "its source is cut again",
    "rows": "they are embedded again",
    "postings": "the file is dropped, and made again when there is time",
    "codes": "the file is dropped, and made again when there is time",
    "waiting": "who waits is found out anew",
    "stray": "it is removed",
    "sidecar": "it is removed, and written anew where it is needed",
    "published": "the database is read again",
    "unfinished": "it is removed",
    "stale": "it is read again",
    "unindexed": "it is read",
    "absent": "it is looked for",
}
NOT_MENDED: Final[Mapping[str, str]] = {
    "database": "the index is built anew: memctl index --rebuild",
    "foreign": "look whose it is: memd neither reads nor removes it",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    kind: str  # of MENDED or NOT_MENDED
    text: str  # one line: what, where
    names: tuple[str, ...] = ()  # of sources or files: what the repair needs
    matrix: int = 0
    rows: tuple[int, ...] = ()

    @property
    def repairable(self) -> bool:
        """Whether `repair` can mend it; else only a new index does."""
        return self.kind in MENDED

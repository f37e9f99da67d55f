"""What holds now: the newest of nearly equal hits first, for a query that says "now", "current" or "still".

Only among hits with the same words of the query: on conflicting facts the newest statement is then first in
nearly all cases, while newer talk about something else would otherwise displace what was asked for. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from typing import Final

from memd.languages import Language
from memd.search.keyword import KeywordArm
from memd.search.ranking import Candidate
from memd.search.runs import FIRST
from memd.text import bare

with suppress(ImportError):  # then search.fallback answers, and nothing here is called
    import numpy as np

# Of the best sort key. With .8 questions about conversations lose .005 of nDCG@10, with .9 .002.
NEARLY: Final = 0.9
_TABLE: Final[dict[Language, str]] = {
    "english": "now current currently still latest today nowadays anymore presently",
    "arabic": "الان الحالي حاليا اليوم احدث",
    "catalan": "ara actual actualment encara avui",
    "czech": "nyni ted aktualni aktualne stale dnes",
    "danish": "nu aktuel aktuelle aktuelt stadig nuvaerende",
    "dutch": "nu huidige momenteel actueel actuele nog vandaag",
    "greek": "τωρα τρεχον τρεχουσα ακομα ακομη σημερα",
    "french": "maintenant actuel actuelle actuellement encore toujours",
    "german": "jetzt aktuell aktuelle aktuellen aktueller momentan derzeit noch heute",
    "indonesian": "sekarang terkini masih terbaru",
    "italian": "adesso attuale attualmente ancora oggi",
    "norwegian": "na gjeldende fortsatt fremdeles",
    "polish": "teraz obecnie obecny obecna aktualny aktualnie nadal dzis",
    "portuguese": "agora atual atualmente ainda hoje",
    "romanian": "acum actual actuala inca astazi",
    "russian": "сейчас теперь текущии текущая актуальныи еще сегодня",
    "serbian": "sada trenutno trenutni jos danas najnoviji",
    "spanish": "ahora actual actualmente todavia aun hoy",
    "swedish": "nu nuvarande aktuell fortfarande",
    "turkish": "simdi guncel hala bugun",
}
_NOW: Final = {language: frozenset(words.split()) for language, words in _TABLE.items()}


def now_words(pieces: Sequence[str], languages: Sequence[Language]) -> frozenset[str]:
    """Return the words of a query that ask for what holds now; English is always read."""
    return _known(tuple(languages)).intersection(map(bare, pieces))


@lru_cache(16)
def _known(languages: tuple[Language, ...]) -> frozenset[str]:
    return frozenset().union(*(_NOW[one] for one in ("english", *languages) if one in _NOW))


def newest(
    candidates: Sequence[Candidate], keyword: KeywordArm, now: frozenset[str], days: Mapping[int, date]
) -> Candidate | None:
    """Return the candidate that comes first as the newest statement; None: the best one stays first.

    Args:
        candidates: best first.
        keyword: the judgement by the query's words.
        now: words that do not count.
        days: source → its day, of those with a known one.
    """
    best = candidates[0]
    near = [one for one in candidates[:FIRST] if one.order >= NEARLY * best.order and one.source in days]
    if best.source not in days or len(near) < 2:  # noqa: PLR2004 - the best one alone
        return None
    words = keyword.words_in(np.array([best.id, *(one.id for one in near)], np.int64))
    needed = [has for text, has in words.items() if has[0] and bare(text) not in now]
    same = [one for at, one in enumerate(near, 1) if needed and all(has[at] for has in needed)]
    latest = max(same, key=lambda one: days[one.source], default=best)  # the first of these, by rank
    return latest if days[latest.source] > days[best.source] else None

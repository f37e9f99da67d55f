"""The caveats of an answer: a weak match, a degraded search, an index that lags behind the notes.

Pure functions. Each returns one line for people, or a boolean from which exit codes follow.
"""

from collections.abc import Iterable
from typing import Any

from memctl.codes import MEANING
from memctl.relative_path import shown
from memctl.text import about, one_line

Answer = dict[str, Any]

NOT_UTF8_NAMED = 3  # paths shown; memd names at most four
TOLD_LAG_MS = 500  # a change that waits longer is reported; a save mostly takes a tenth of that
NEARLY_ALL = 0.99  # share of embedded chunks above which the missing ones are counted instead
NO_GOOD_MATCH = "no good match (--nearest shows the closest hits)"
WEAK_MATCH = "weak match"  # most questions about subjects that no note covers get one, too

# `index.renewed` of an answer → why the index is being rebuilt.
RENEWED = {
    "updated": "memd was updated: the index is being rebuilt",
    "damaged": "the index was damaged: it is being rebuilt",
}


def notes(answer: Answer, *, cwd: str | None = None, with_weak: bool = True) -> str | None:
    """Return the caveats of an answer on one line; None if there are none.

    *cwd*: paths are shown relative to this folder; None: to the root of the workspace. *with_weak*: say that
    all hits are weak matches, which helps a program more than a person who sees the hits.
    """
    parts = []
    if corrections := answer.get("corrected"):
        parts.append(f"also searched for {corrected(corrections)}")
    if as_words := answer.get("as_words"):
        parts.append(f"searched as words: {', '.join(map(one_line, as_words))}")
    if unmatched := answer.get("unmatched"):
        parts.append(f"no note has {', '.join(map(one_line, unmatched))}")
    if answer.get("without"):
        parts.append(_without(answer, cwd))
    if is_nearest(answer):
        parts.append("no good match: these are only the closest hits")
    elif with_weak and is_weak(answer):
        parts.append(WEAK_MATCH)
    if codes := answer.get("degraded"):
        prefix = "keyword only" if answer.get("mode") == "keyword" else "degraded"
        parts.append(f"{prefix}: {reasons(codes)}")
    if answer.get("synced") is False:  # without `sync` in the request the field is missing
        parts.append("not synced in time: the latest changes may be missing")
    index = answer.get("index") or {}
    if renewed := RENEWED.get(index.get("renewed") or ""):
        parts.append(renewed)
    pending = index.get("pending_files") or 0
    if not answer.get("synced") and _lags(index):
        # Not "changed": a file saved just before memd read it is read a second time to be sure.
        parts.append(f"{pending} file{'s' if pending > 1 else ''} still to be read")
    if (waiting := index.get("pending_vectors")) and answer.get("mode") != "keyword":
        parts.append(embedding(waiting, index))
    return "; ".join(parts) or None


def standing(note: dict[str, Any], cwd: str) -> str | None:
    """Return one line on what holds in the place of *note*, and whose word it is; None if it just holds."""
    places, entries = (
        ", ".join(shown(note["workspace"], one, cwd) for one in note.get(key) or ())
        for key in ("superseded_by", "entries")
    )
    origin = note.get("derived_from") or (note.get("source") or {}).get("derived_from")
    later = note.get("later")
    place = f"{shown(note['workspace'], later['path'], cwd)}:{later['line']}" if later else ""
    parts = [
        f"superseded by {places}" if places else "",
        f"expired (was valid until {one_line(note['expired'])})" if note.get("expired") else "",
        f"later: {place}, {one_line(later['date'])}" if later else "",
        f"written from this conversation: {entries}" if entries else "",
        f"from an {one_line(origin)} source" if origin else "",
    ]
    return "; ".join(filter(None, parts)) or None


def _without(answer: Answer, cwd: str | None) -> str:
    """Return the words excluded by a minus; if that left no hits, also the count of hits without it."""
    words = ", ".join(f'"{word}"' if " " in word else word for word in map(one_line, answer["without"]))
    instead = answer.get("without_minus")
    if not instead:
        return f"without: {words}"
    found = "nothing"
    if best := instead["best"]:
        count = f"{instead['hits']} hit{'s' if instead['hits'] > 1 else ''}"
        path = shown(answer["workspace"], best["path"], answer["workspace"] if cwd is None else cwd)
        found = f"{count}, the best at {path}:{best['start_line']}"
    return f"without: {words} (no hits are left; without the minus the query finds {found})"


def _lags(index: dict[str, Any]) -> bool:
    """Return whether files have been waiting for longer than a save that is read twice takes."""
    return bool(index.get("pending_files")) and index.get("lag_ms", TOLD_LAG_MS) >= TOLD_LAG_MS


def not_utf8(answer: Answer, cwd: str) -> str | None:
    """Return one line with the notes of which words cannot be found, as they are not UTF-8; None if none."""
    paths = answer.get("not_utf8") or ()
    named = ", ".join(shown(answer["workspace"], path, cwd) for path in paths[:NOT_UTF8_NAMED])
    more = ", … (memctl status)" if len(paths) > NOT_UTF8_NAMED else ""
    return f"not UTF-8, so that some words are not found: {named}{more}" if paths else None


def is_complete(index: dict[str, Any]) -> bool:
    """Return whether all saved notes could be found, also by meaning; *index* comes from an answer."""
    return not (index.get("first") or index.get("pending_vectors") or _lags(index))


def is_whole(answer: Answer) -> bool:
    """Return whether everything was searched as requested, so that an empty answer is conclusive."""
    index = answer.get("index") or {}
    is_first = index.get("first_words") or (index.get("first") and answer.get("mode") != "keyword")
    return not (is_first or answer.get("degraded") or answer.get("synced") is False)


def is_nearest(answer: Answer) -> bool:
    """Return whether an answer has hits, but no good match."""
    return answer.get("confidence") == "none" and _has_hits(answer)


def is_weak(answer: Answer) -> bool:
    """Return whether an answer has hits, and all of them are weak matches."""
    return answer.get("confidence") == "weak" and _has_hits(answer)


def _has_hits(answer: Answer) -> bool:
    """Return whether the query found something; the core notes of every recall have no score."""
    found = answer.get("hits") or answer.get("sources") or ()
    return any(source["score"] is not None for source in found)


def corrected(corrections: dict[str, str]) -> str:
    """Return the corrected words, each followed by the typed word in brackets."""
    return ", ".join(f"{one_line(term)} ({one_line(typed)})" for typed, term in corrections.items())


def embedding(waiting: int, index: dict[str, Any]) -> str:
    """Return the share of the notes that can be found by meaning, or the number of chunks that can't."""
    share = index.get("embedded")
    if share is None or share >= NEARLY_ALL:
        return f"{waiting} chunk{'s' if waiting > 1 else ''} found by words only until embedded"
    left_s = (index.get("left_s") or {}).get("vectors")
    left = f", about {about(left_s)} left" if left_s else ""
    return f"meaning: {share * 100:.0f} % of the notes{left}"


def reasons(codes: Iterable[str]) -> str:
    """Return the `degraded` codes with their meanings."""
    return ", ".join(
        f"{one_line(code)} ({MEANING[code]})" if code in MEANING else one_line(code) for code in codes
    )

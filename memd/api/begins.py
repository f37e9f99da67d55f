"""What fits the task when a conversation begins: the notes of its project that are due, changed or new.

A note is the project's if it is in the conversation's folder, if its path, topic or tags have the name of the
project's folder, or if one of the project's conversations wrote it.
"""

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from memd.api.params import Begins
from memd.index.snapshot import View
from memd.index.source_rows import OWN, SESSION, written_time
from memd.records import Source
from memd.search.recall import NoteTitle, Titles

MOST = 6  # notes of each kind; arbitrary: a person reads as many at a glance
RECENT = 5_000  # of the notes, by the time of their last change
DUE_KEYS = ("due", "deadline")
SOON = timedelta(days=7)
LONG_AGO = timedelta(days=90)  # arbitrary: what was due before was given up
STATUS = ("status", "state", "done", "completed")
DONE = ("done", "completed", "closed", "cancelled", "canceled", "dropped", "archived", "true", "yes")


def begun(view: View, begins: Begins, today: date) -> tuple[list[Titles], list[Source]]:
    """Return the titles for the beginning of a conversation, and the newest entries of its project."""
    changed = view.reader.newest(RECENT)
    here = {source.id: source for source in _of_project(view, begins, list(changed))}
    expired = view.snapshot.expired(today)
    held = [one for one in here.values() if one.id not in expired and not view.snapshot.superseded_by(one.id)]
    days = _due(view, today)
    due = sorted((one for one in held if one.id in days), key=lambda one: days[one.id])
    # Of the others: without an earlier conversation nothing has changed since.
    since_ns = math.inf if begins.since is None else begins.since * 1_000_000_000
    later = [one for one in held if changed[one.id] >= since_ns and one.id not in days]
    entries = (one for one in held if one.path.startswith(OWN))
    newest = sorted(entries, key=lambda one: (one.day, changed[one.id]), reverse=True)
    new = [one for one in newest if changed[one.id] < since_ns and one.id not in days]
    since = datetime.fromtimestamp(begins.since or 0, UTC).astimezone()
    kinds = (
        ("Due in this project:", due),
        (f"Changed since {since:%Y-%m-%d %H:%M}, when the last conversation about it began:", later),
        ("Newest entries about it:", new),
    )
    titles = [
        Titles(head, tuple(NoteTitle(one.title, one.path, days.get(one.id)) for one in notes[:MOST]))
        for head, notes in kinds
        if notes
    ]
    return titles, newest[:MOST]


def _of_project(view: View, begins: Begins, newest: list[int]) -> Iterator[Source]:
    written = view.reader.sources_with_field(SESSION, begins.sessions) if begins.sessions else set()
    name = begins.project.casefold()
    inside = None if begins.folder is None else f"{begins.folder}/".lstrip("/")
    for source in (view.snapshot.sources[one] for one in newest if one in view.snapshot.sources):
        if source.id in written or (inside is not None and source.path.startswith(inside)):
            yield source
        elif name:
            parts = source.path.casefold().split("/")
            if name in {*parts, parts[-1].rpartition(".")[0], *map(str.casefold, source.tags)}:
                yield source


def _due(view: View, today: date) -> dict[int, date]:
    """Return source → the day on which it is due or expires, where that is near."""
    over = {one for key in STATUS for one in view.reader.sources_with_field(key, DONE)}
    days = {
        source: last
        for source, last in view.snapshot.sources.expiring.items()
        if today <= last <= today + SOON
    }
    for key in DUE_KEYS:
        for value in view.reader.field_values(key):
            time = written_time(value)
            if time and today - LONG_AGO <= time.last <= today + SOON:
                days |= dict.fromkeys(view.reader.sources_with_field(key, [value]), time.last)
    return {source: day for source, day in days.items() if source not in over}

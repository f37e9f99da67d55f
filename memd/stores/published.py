"""The published form of the sources of an index: whole, with masked secrets."""

import json
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from memd.index.columns import take
from memd.index.reader import StoredChunk
from memd.index.snapshot import View
from memd.index.source_rows import hash_of, read_by_model, searchable, signature
from memd.index.vectors import FLOAT_BYTES
from memd.stores.store import PublishedChunk, PublishedSource, SourceKey
from memd.text import paired

MASKED: Final = "[masked: "  # begins what stands for a secret
AMONG: Final = "IN (SELECT value FROM json_each(?))"
_SOURCES = f"""
    SELECT id, path, hash, title, tags, day, day_of, origin, front_matter, valid_until, evergreen, external,
        mtime_ns
    FROM sources WHERE id {AMONG} ORDER BY id
"""
_NAMES = f"SELECT source, kind, name FROM names WHERE source {AMONG} ORDER BY 1, 2, 3"
_LINKS = f"SELECT source, kind, target, name, line FROM links WHERE source {AMONG} ORDER BY 1, 2, 3"
_FIELDS = f"SELECT source, key, value FROM fields WHERE source {AMONG} ORDER BY 1, 2, 3"
_CHUNKS = f"""
    SELECT source, id, start_line, end_line, start_byte, heading, text, context, length, hash, signature,
        entry, origin
    FROM chunks WHERE source {AMONG} ORDER BY id
"""


def published_sources(
    view: View, workspace: str, ids: Sequence[int], *, with_chunks: bool = True
) -> tuple[PublishedSource, ...]:
    """Return live sources as they are published: with the view of an agent their secrets are masked.

    A chunk with a secret gets its hash, words and signature from the masked text, and no vector: all of these
    would tell something of the secret. A value of front matter is masked, too, if its key shows that it is a
    secret. The revision is the generation of the index.
    """

    def masked(text: str) -> str:
        return text if view.veil is None else view.veil.masked(text)

    if not ids:
        return ()
    asked = json.dumps(list(ids))
    names, links, fields = (_grouped(view, statement, asked) for statement in (_NAMES, _LINKS, _FIELDS))
    chunks = _grouped(view, _CHUNKS, asked) if with_chunks else {}
    shown = view.shown([row[0] for rows in chunks.values() for row in rows])
    found = []
    for row in list(view.reader.each(_SOURCES, (asked,))):
        number, path, digest, _, _, day, day_of, origin, front, until, evergreen, external, changed = row
        source = view.source(number)
        each = chunks.get(number, [])
        found.append(
            PublishedSource(
                key=SourceKey(workspace, path),
                revision=view.snapshot.generation,
                hash=digest,
                title=source.title,
                tags=source.tags,
                day=day,
                day_of=day_of,
                origin=origin,
                front_matter=masked(front),
                valid_until=until,
                evergreen=bool(evergreen),
                external=bool(external),
                mtime_ns=changed,
                names=tuple((kind, masked(name)) for kind, name in names.get(number, ())),
                links=tuple(
                    (kind, masked(target), masked(name), line)
                    for kind, target, name, line in links.get(number, ())
                ),
                fields=tuple(
                    (masked(key), _value(view, key, value)) for key, value in fields.get(number, ())
                ),
                chunks=tuple(
                    _published_chunk(
                        view,
                        path,
                        ordinal,
                        one,
                        shown=shown[one[0]],
                        context=masked(one[6]),
                        front=masked(front),
                    )
                    for ordinal, one in enumerate(each)
                ),
            )
        )
    return tuple(found)


def _published_chunk(
    view: View, path: str, ordinal: int, row: Sequence[Any], *, shown: StoredChunk, context: str, front: str
) -> PublishedChunk:
    number, start, end, start_byte, heading, text, plain, length, digest, form, entry, origin = row
    read = read_by_model(context, shown.text)
    words = view.reader.indexed_terms(paired(searchable(read, path, None if ordinal else front)))
    is_masked = (heading, text, plain) != (shown.heading, shown.text, context)
    if is_masked:
        digest, form, length = hash_of(read), signature(shown.heading, shown.text), len(words)
    return PublishedChunk(
        ordinal=ordinal,
        start_line=start,
        end_line=end,
        start_byte=start_byte,
        heading=shown.heading,
        text=shown.text,
        context=context,
        words=" ".join(words),
        length=length,
        hash=digest,
        signature=form,
        entry=entry,
        origin=origin,
        vector=None if is_masked else _vector(view, number),
    )


def _value(view: View, key: str, value: str) -> str:
    if view.veil is None:
        return value
    shown = view.veil.masked(value)
    named = f"{key.rpartition('.')[2]}: {shown}"
    return shown if view.veil.masked(named) == named else f"{MASKED}credential]"


def _vector(view: View, chunk: int) -> bytes | None:
    [row] = take(view.snapshot.columns.row, [chunk])
    rows = view.snapshot.rows
    size = rows.dim * FLOAT_BYTES
    return bytes(rows.buffer[row * size : (row + 1) * size]) if row >= 0 else None


def _grouped(view: View, statement: str, asked: str) -> dict[int, list[tuple[Any, ...]]]:
    """Return {source: rows without it} of a statement whose first column is the source."""
    rows = sorted(view.reader.each(statement, (asked,)), key=itemgetter(0))
    return {source: [row[1:] for row in some] for source, some in groupby(rows, key=itemgetter(0))}

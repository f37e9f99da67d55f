"""The parser of daily files: cuts each block of a daily file into chunks as if it were a separate note.

No chunk holds text of two writers, a fence that one entry leaves open does not extend into the next, and no
chunk contains the marks. Pure: no file, no clock.
"""

from collections.abc import Iterator
from dataclasses import replace

from memd import daily
from memd.records import ChunkLimits, Document, Tokenizer
from memd.sources.chunk import Masked, merged_tags, parse


def parse_daily(
    text: str, *, tokenizer: Tokenizer, limits: ChunkLimits, plain: bool = False, masked: Masked | None = None
) -> Document:
    """Cut a daily file into chunks, as `memd.sources.chunk.parse` does; each chunk names its block."""
    raw = text.encode()
    documents: list[Document] = []
    title = ""
    for block, start, stop in _stretches(raw):
        before = raw.count(b"\n", 0, start)
        part = raw[start:stop].decode()
        document = parse(
            part, tokenizer=tokenizer, limits=limits, plain=plain, is_top=not start, masked=masked
        )
        documents.append(_moved(document, before, block))
        title = title or ("" if block else document.title)  # a heading in an entry is not the day's
    if not documents:
        return parse(text, tokenizer=tokenizer, limits=limits, plain=plain, masked=masked)
    tags: tuple[str, ...] = ()
    for document in documents:
        tags = merged_tags(tags, document.tags)
    return replace(
        documents[0],
        title=title,
        tags=tags,
        chunks=tuple(chunk for document in documents for chunk in document.chunks),
        warnings=tuple(warning for document in documents for warning in document.warnings),
        links=tuple(link for document in documents for link in document.links),
        headings=tuple(heading for document in documents for heading in document.headings),
    )


def _stretches(raw: bytes) -> Iterator[tuple[daily.DailyBlock | None, int, int]]:
    """Yield the byte ranges that are not blank: the Markdown of each block, and the text between blocks."""
    at = 0
    for block in daily.blocks(raw):
        yield from _not_blank(raw, None, at, block.start)
        yield from _not_blank(raw, block, block.body, block.text_stop)
        at = block.stop
    yield from _not_blank(raw, None, at, len(raw))


def _not_blank(
    raw: bytes, block: daily.DailyBlock | None, start: int, stop: int
) -> Iterator[tuple[daily.DailyBlock | None, int, int]]:
    if raw[start:stop].strip():
        yield block, start, stop


def _moved(document: Document, lines: int, block: daily.DailyBlock | None) -> Document:
    """Return *document* with its lines counted from the top of the file, *lines* further down."""
    if not lines:
        return document
    entry, origin = ("", "") if block is None else (block.id, block.origin)
    warnings = (f"too-complex: some text after line {lines} is indexed as plain text",)
    return replace(
        document,
        chunks=tuple(
            replace(
                chunk,
                start_line=chunk.start_line + lines,
                end_line=chunk.end_line + lines,
                entry=entry,
                origin=origin,
            )
            for chunk in document.chunks
        ),
        links=tuple(
            link._replace(line=link.line + lines) for link in document.links if link.line is not None
        ),
        headings=tuple(one._replace(line=one.line + lines) for one in document.headings),
        warnings=warnings if document.warnings else (),
    )

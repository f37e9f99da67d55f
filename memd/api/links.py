"""The links of a note as answers tell of them: out of it and into it, with paths."""

from itertools import islice

from memd.api.results import LinkIn, LinkOut, NoteLinks
from memd.index.links import links_in, links_out
from memd.index.snapshot import View
from memd.records import Source

MAX_LINKS = 50  # of each direction that an answer names; arbitrary: an agent reads all of them


def note_links(view: View, source: Source) -> NoteLinks:
    """Return the links of a live source, those of the front matter first, and those of others to it."""
    sources = view.snapshot.sources
    outgoing = list(links_out(view.reader.each, source.id, source.path, sources.__contains__))
    incoming = list(links_in(view.reader.each, source.id, sources.__contains__))
    return NoteLinks(
        outgoing=[
            LinkOut(
                kind=one.kind,
                target=one.target,
                path=None if one.to is None else sources[one.to].path,
                line=one.line,
            )
            for one in islice(outgoing, MAX_LINKS)
        ],
        outgoing_total=len(outgoing),
        incoming=[
            LinkIn(
                kind=one.kind,
                path=sources[one.source].path,
                title=view.source(one.source).title,
                line=one.line,
            )
            for one in islice(incoming, MAX_LINKS)
        ],
        incoming_total=len(incoming),
    )

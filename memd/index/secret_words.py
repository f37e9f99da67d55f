"""Secrets in a source: what of it is indexed, and what only people see of it.

The text of a source is masked before it is cut, so that whatever is derived of it (chunks, names, links,
fields, hashes, vectors) is that of a source without its secrets. For any thread or process.
"""

from collections.abc import Callable
from dataclasses import replace

from memd.entries.secrets import MASK, mask, masked_values, replaced, replacements
from memd.records import Document, Link
from memd.sources.front_matter import closing_line
from memd.sources.markdown import split_lines

Cut = Callable[..., Document]  # of a text; the keyword `masked` is that of `memd.sources.chunk.parse`


def masked_document(text: str, cut: Cut) -> tuple[Document, Document]:
    """Return a text as it is cut without its secrets, and as it is cut with them: mostly the same."""
    whole = cut(text)
    spans = replacements(text)
    if not spans and masked_values(whole.front_matter) is whole.front_matter:
        return whole, whole
    lines = split_lines(text)
    end = closing_line(lines)
    front = 0 if end is None else lines.ends[end]
    # A mask is no YAML: what is front matter is masked by its values, what is none as the text that it is.
    behind = replaced(text, [span for span in spans if span[0] >= front])
    document = cut(behind, masked=masked_values)
    if front and not document.front_matter:
        behind = replaced(text, spans)
        document = cut(behind)
    # Links with masked targets: of a mask inside of brackets no link would be left.
    found: dict[tuple[str, str], Link] = {}
    for link in whole.links:
        target = mask(link.target)
        if target == link.target and target not in behind:  # a part of a secret
            target = f"{MASK}credential]"
        found.setdefault((link.kind, target), link._replace(target=target))
    return replace(document, links=tuple(found.values())), whole

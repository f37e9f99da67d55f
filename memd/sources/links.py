"""Links of a note: ``[[wikilinks]]``, Markdown's links and images, ``related`` and ``supersedes`` on top.

Markdown's are read by markdown-it's inline rules over the raw text of a block, where offsets are those of the
file. Targets are returned as written, but decoded; `memd.index.links`, which knows all notes, resolves them.
Pure.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference, unescapeAll
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline, html_inline, image, link

from memd.records import Link, LinkKind
from memd.sources.front_matter import FrontMatter
from memd.sources.markdown import BLOB, Block, Lines, TooComplexError, texts
from memd.text import SCHEME

# Links of a text, and of each key of its front matter: far more than people write. Arbitrary.
MAX_LINKS = 20_000
MAX_TARGET_CHARS = 1_000  # of a path; a longer target is a paragraph
# Steps of markdown-it on one text, plus one for each CHARS_A_LINK_WORK characters: then no link is read.
# Counted rather than timed, so that a text has the same links on every machine. A step takes 1 to 2 µs.
LINK_WORK = 400_000
CHARS_A_LINK_WORK = 4
LINK_STEPS = 20  # what a link takes beside those of its label
HTML_CHARS_A_STEP = 128  # that a comment without an end is searched for

_WIKILINK = re.compile(r"\[\[((?:[^\[\]\n]|\[[^\[\]\n]*\]){1,2200})\]\]")
_IN_FRONT = re.compile(r"\[[^\[\]]*\]\(<?([^<>()]+)>?\)")
_DEFINITION = re.compile(
    r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*\[((?:[^\[\]\\]|\\.){1,999})\]:[ \t]*(?:\r?\n[ \t>]*)?"
    r"(<[^<>\n]*>|[^\s<]\S*)(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*\r?(?:\n|\Z)"
)
_MILLISECONDS = re.compile(r"\d{13}")  # in the front matter of Dendron, whose links are [[label|note]]
_KEYS: tuple[LinkKind, ...] = ("related", "supersedes")


class Occurrence(NamedTuple):
    """A link in a text, by offsets."""

    kind: LinkKind
    target: str  # decoded; "": the note itself
    part: str  # heading, or ``^block``
    start: int
    stop: int
    written: tuple[int, int] | None  # target and part, as written; None: in the definition of a reference


def read_links(lines: Lines, blocks: Sequence[Block], front: FrontMatter) -> tuple[Link, ...]:
    """Return the links of a note to others in their order, from the front matter first.

    Links in code and HTML do not count, nor do those to other protocols. An embed (``![[note]]``) is a link.
    """
    found = []
    for kind in _KEYS:
        targets = dict.fromkeys(map(_unlinked, front.texts(kind)))
        kept = [one for one in targets if 0 < len(one) <= MAX_TARGET_CHARS][:MAX_LINKS]
        found += [Link(kind, target, None) for target in kept]
    for one in occurrences(lines, blocks, front):
        is_shown = one.kind != "definition" and one.target != BLOB  # an image in the text itself
        if is_shown and 0 < len(one.target) <= MAX_TARGET_CHARS:
            number = lines.number_at(one.start)
            begin = lines.starts[number]
            lacking = sum(lacks for at, lacks in lines.folded if begin < at <= one.start)
            column = one.start - begin + lacking + 1
            found.append(Link(one.kind, one.target, number + 1, column, one.part[:MAX_TARGET_CHARS]))
    return tuple(found)


def occurrences(lines: Lines, blocks: Sequence[Block], front: FrontMatter) -> Iterator[Occurrence]:
    """Yield the links in the text of *blocks*, at most MAX_LINKS, also those to parts of the note itself."""
    references: dict[str, dict[str, str]] = {}
    for _, text in texts(lines, blocks, "]:"):
        for label, href, _, _ in _definitions(text):
            references.setdefault(label, {"href": href, "title": ""})
    is_dendron = any(
        _MILLISECONDS.fullmatch(one) for key in ("created", "updated") for one in front.texts(key)
    )
    steps = LINK_WORK + len(lines.text) // CHARS_A_LINK_WORK
    env: dict[str, Any] = {"references": references, "work": steps, "label_first": is_dendron}
    count = 0
    try:
        for start, text in texts(lines, blocks, "["):
            if not references and "](" not in text and "[[" not in text:
                continue
            for one in _in_text(text, env):
                written = one.written and (one.written[0] + start, one.written[1] + start)
                yield one._replace(start=one.start + start, stop=one.stop + start, written=written)
                count += 1
                if count == MAX_LINKS:
                    return
    except TooComplexError:
        return


def the_link(text: str) -> Occurrence | None:
    """Return the link to a note that the whole of *text* is, if it is one."""
    text = text.removeprefix("!") if text.startswith("![[") else text
    try:
        found = list(_in_text(text, {"references": {}, "work": LINK_WORK, "label_first": False}))
    except TooComplexError:
        return None
    return found[0] if [(one.start, one.stop) for one in found] == [(0, len(text))] else None


def _in_text(text: str, env: dict[str, Any]) -> Iterator[Occurrence]:
    begin = 0
    for _, href, (start, stop), end in _definitions(text) if env["references"] else ():
        begin = end
        # Nothing points from there, but the targets of references are written there.
        if (named := _of_url(href)) is not None:
            yield Occurrence("definition", *named, start, stop, (start, stop))
    state = StateInline(text, _INLINE, env, [])
    state.pos = begin
    _INLINE.inline.tokenize(state)
    for token in state.tokens:
        if token.type == "wikilink":
            start, stop = token.meta["span"]
            inside = text[start + 2 : stop - 2]
            label = len(inside) - len(inside.rpartition("|")[2]) if env["label_first"] else 0
            inside = inside[label:].partition("|")[0].removesuffix("\\")
            target, _, part = inside.partition("#")
            begin = start + 2 + label + len(inside) - len(inside.lstrip())
            written = (begin, begin + len(inside.strip()))
            if target.strip() or part.strip():
                yield Occurrence("text", target.strip(), part.strip(), start, stop, written)
        elif token.type in {"link_open", "image"}:
            href = str(token.attrs["href" if token.type == "link_open" else "src"])
            if (named := _of_url(href)) is not None:
                kind: LinkKind = "markdown" if token.type == "link_open" else "image"
                start, stop = token.meta["span"]
                yield Occurrence(kind, *named, start, stop, token.meta["written"])


def _definitions(text: str) -> Iterator[tuple[str, str, tuple[int, int], int]]:
    """Yield label, URL, place of the URL, and end of each of the definitions at the top of a block."""
    at = 0
    while match := _DEFINITION.match(text, at):
        written = match[2]
        href = _INLINE.normalizeLink(unescapeAll(written[1:-1] if written.startswith("<") else written))
        if _INLINE.validateLink(href):
            yield normalizeReference(match[1]), href, match.span(2), match.end()
        at = match.end()


def _of_url(href: str) -> tuple[str, str] | None:
    """Return path and part of a relative URL; None if it leads elsewhere."""
    if SCHEME.match(href):
        return None
    path, _, part = href.partition("#")
    path = unquote(path.partition("?")[0])
    return None if "\0" in path or not (path or part) else (path, unquote(part))


class _Parser(ParserInline):
    """markdown-it's, with a budget: each label is read anew from each bracket before it."""

    def skipToken(self, state: StateInline) -> None:  # noqa: N802 - markdown-it's name
        _work(state, 1)
        super().skipToken(state)


def _work(state: StateInline, steps: int) -> None:
    state.env["work"] -= steps
    if state.env["work"] < 0:
        raise TooComplexError


def _wikilink(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's
    match = _WIKILINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("wikilink", "", 0).meta = {"span": match.span()}
    state.pos = match.end()
    return True


def _html(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    if state.src.startswith(("<!", "<?"), state.pos):
        _work(state, (state.posMax - state.pos) // HTML_CHARS_A_STEP)
    return html_inline(state, silent)


def _with_place(rule: Callable[[StateInline, bool], bool], mark: int) -> Callable[[StateInline, bool], bool]:
    """Return a rule for links that notes where they are; *mark*: length of what is before the bracket."""

    def placed(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
        start, most, known = state.pos, state.posMax, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            token = next(one for one in state.tokens[known:] if one.type in {"link_open", "image"})
            stop = state.pos
            _work(state, LINK_STEPS)
            label_end = state.md.helpers.parseLinkLabel(state, start + mark, not mark)
            at, written = label_end + 2, None
            if at < stop and state.src[at - 1] == "(":
                while state.src[at] in " \t\r\n":
                    at += 1
                found = state.md.helpers.parseLinkDestination(state.src, at, most)
                written = (at, found.pos if found.ok else at)
            token.meta = {"span": (start, stop), "written": written}
        return True

    return placed


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark")
    made.inline = _Parser()
    rules = made.inline.ruler
    rules.at("link", _with_place(link, 0))
    rules.at("image", _with_place(image, 1))
    rules.at("html_inline", _html)
    rules.after("link", "wikilink", _wikilink)
    rules.enableOnly(["text", "escape", "backticks", "link", "wikilink", "image", "autolink", "html_inline"])
    return made


_INLINE = _parser()


def _unlinked(text: str) -> str:
    """Return the target in a front matter value: of a ``[[note#part|alias]]`` or ``[text](path)``, or all.

    YAML reads the brackets of an unquoted link as two lists, so the value may be ``note|alias``.
    """
    if match := _WIKILINK.fullmatch(text):
        return match[1].partition("|")[0].partition("#")[0].strip()
    if (match := _IN_FRONT.fullmatch(text)) and not SCHEME.match(match[1]):
        path = unquote(match[1].partition("#")[0])
        return path if path.startswith(("/", "./", "../")) else f"./{path}"
    return text.partition("|")[0].strip()

"""The plot of an evaluation: three panels over the same rows, a row an arm; an SVG written by hand.

Quality with its interval, where the answers stand, and the time they take. Holds figures and no word of a
note or query, so that it can be shown around.
"""

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

WIDTH, ROW, TOP, BOTTOM = 1080, 46, 118, 42  # in pixels, as all below
EDGE = 24  # on the left and right
LABELS = 80  # width of the arms' names
GAP = 48  # between panels: half of an axis label ends in it
PANEL = (WIDTH - 2 * EDGE - LABELS - 2 * GAP - 16) / 3
BAR = 22  # thickness

FONTS = "system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif"
INK, FAINT, GRID = "#1f2328", "#59636e", "#d1d9e0"
OURS, OTHERS = "#0969da", "#8c959f"  # hybrid stands out, the others are what it is compared with
# Where the first right note stands → colour, ink on it, legend; dark is early.
STANDING = {
    "1": ("#0550ae", "#ffffff", "first"),
    "2-3": ("#4c9bf0", INK, "2 to 3"),
    "4-10": ("#b6dbff", INK, "4 to 10"),
    "none": ("#e6e8eb", FAINT, "not in 10"),
}
DEPTH = 10  # ranks that the report judges: a page of hits
MIN_LABELLED = 0.12  # share of a bar that has room for its percentage

Fields = dict[str, Any]
Point = tuple[float, float]


def svg(report: Fields) -> str:
    """Return the report as an SVG document."""
    arms = list(report["arms"])
    height = TOP + ROW * len(arms) + BOTTOM
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}" font-size="14" fill="{INK}">',
        f"<title>{escape(headline(report))}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(EDGE, 34, headline(report), size=18, weight="600"),
    ]
    for row, arm in enumerate(arms):
        weight = "600" if arm == "hybrid" else "400"
        label = f"{arm.partition('@')[0]} *" if "@" in arm else arm
        parts.append(_text(EDGE + LABELS - 16, _middle(row) + 5, label, anchor="end", weight=weight))
    for number, panel in enumerate((_quality, _standing, _latency)):
        left = EDGE + LABELS + number * (PANEL + GAP)
        parts += panel(report["arms"] if panel is not _standing else report, left, len(arms))
    return "\n".join([*parts, "</svg>", ""])


def headline(report: Fields) -> str:
    """Return in a line what was asked."""
    amount = len(report["results"])
    asked = f"{amount:,} question{'' if amount == 1 else 's'}"
    starred = f"; * with {report['compared']['model']}" if "compared" in report else ""
    if report["questions"]["from"] == "headings":
        return f"{asked} from headings of {report['questions']['notes']:,} notes, held out{starred}"
    return f"{asked} of a golden file{starred}"


def standing(report: Fields, arm: str) -> dict[str, int]:
    """Return how many questions have their first right source at rank 1, 2 to 3, 4 to 10, or not there."""
    found = dict.fromkeys(("1", "2-3", "4-10", "none"), 0)
    for row in report["results"]:
        rank = row["arms"][arm]["rank"] or DEPTH + 1
        found["1" if rank == 1 else "2-3" if rank <= 3 else "4-10" if rank <= DEPTH else "none"] += 1  # noqa: PLR2004
    return found


def _quality(arms: Mapping[str, Fields], left: float, rows: int) -> Iterator[str]:
    """Draw nDCG@10 as bars with 95 % intervals."""
    yield from _panel_title(left, "nDCG@10", "1 is a perfect order; lines: 95 % intervals")
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield from _tick(left + tick * PANEL, f"{tick:g}", rows)
    for row, (arm, facts) in enumerate(arms.items()):
        value, y = facts["measures"]["ndcg@10"], _middle(row)
        yield _bar(left, y, value * PANEL, OURS if arm == "hybrid" else OTHERS)
        end = value
        if facts["interval"]:
            low, high = facts["interval"]
            end = high
            yield _line((left + low * PANEL, y), (left + high * PANEL, y), INK, 2)
            for edge in (low, high):
                yield _line((left + edge * PANEL, y - 5), (left + edge * PANEL, y + 5), INK, 2)
        # Within the bar where the picture would end else.
        inside = end > 0.84  # noqa: PLR2004 (four characters' width of the panel)
        x = left + 8 if inside else left + end * PANEL + 8
        yield _text(x, y + 5, f"{value:.2f}", weight="600", fill="#ffffff" if inside else INK)


def _standing(report: Fields, left: float, rows: int) -> Iterator[str]:
    """Draw where the first right source stands, as shares of all questions."""
    yield from _panel_title(left, "Where the first right note stands", "")
    x = left
    for colour, _, label in STANDING.values():
        yield f'<rect x="{x:.1f}" y="{TOP - 38}" width="12" height="12" fill="{colour}"/>'
        yield _text(x + 16, TOP - 28, label, size=12, fill=FAINT)
        x += 16 + 6.5 * len(label) + 12
    for percent in (0, 25, 50, 75, 100):
        yield from _tick(left + percent / 100 * PANEL, f"{percent} %", rows)
    total = len(report["results"])
    for row, arm in enumerate(report["arms"]):
        x = left
        for place, amount in standing(report, arm).items():
            colour, ink, _ = STANDING[place]
            share = amount / total
            if amount:
                yield _bar(x, _middle(row), share * PANEL, colour)
            if share >= MIN_LABELLED:
                middle = x + share * PANEL / 2
                yield _text(
                    middle, _middle(row) + 5, f"{100 * share:.0f} %", size=12, anchor="middle", fill=ink
                )
            x += share * PANEL


def _latency(arms: Mapping[str, Fields], left: float, rows: int) -> Iterator[str]:
    """Draw p50 and p95 on a logarithmic axis."""
    yield from _panel_title(left, "Time to the answer, ms", "dot: half are faster; line: to 95 of 100")
    times = [facts["latency_ms"][name] for facts in arms.values() for name in ("p50", "p95")]
    low = math.floor(math.log10(max(min(times), 0.01)))
    high = max(math.ceil(math.log10(max(*times, 0.02))), low + 1)

    def at(time_ms: float) -> float:
        return left + (math.log10(max(time_ms, 10.0**low)) - low) / (high - low) * PANEL

    for power in range(low, high + 1):
        yield from _tick(at(10.0**power), f"{10**power:g}", rows)
    for row, (arm, facts) in enumerate(arms.items()):
        p50, p95, y = facts["latency_ms"]["p50"], facts["latency_ms"]["p95"], _middle(row) + 7
        colour = OURS if arm == "hybrid" else OTHERS
        yield _line((at(p50), y), (at(p95), y), colour, 5)
        yield f'<circle cx="{at(p50):.1f}" cy="{y:.1f}" r="6" fill="{colour}"/>'
        label = f"{_ms(p50)} to {_ms(p95)}"
        # Above its line, where it never meets another one; at the right end it ends with the panel.
        at_end = at(p50) + 7.5 * len(label) > left + PANEL
        x = left + PANEL if at_end else at(p50) - 6
        yield _text(x, y - 10, label, size=13, anchor="end" if at_end else "start")


def _panel_title(left: float, title: str, note: str) -> Iterator[str]:
    yield _text(left, TOP - 52, title, weight="600")
    if note:
        yield _text(left, TOP - 28, note, size=12, fill=FAINT)


def _tick(x: float, label: str, rows: int) -> Iterator[str]:
    bottom = TOP + ROW * rows
    yield _line((x, TOP - 8), (x, bottom), GRID, 1)
    yield _text(x, bottom + 20, label, size=12, anchor="middle", fill=FAINT)


def _middle(row: int) -> float:
    return TOP + ROW * row + ROW / 2 - 4


def _bar(x: float, y: float, width: float, colour: str) -> str:
    top = y - BAR / 2
    return f'<rect x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def _line(begin: Point, end: Point, colour: str, width: float) -> str:
    places = f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {places} stroke="{colour}" stroke-width="{width}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 14,
    anchor: str = "start",
    weight: str = "400",
    fill: str = INK,
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{fill}">{escape(text)}</text>'
    )


def _ms(time_ms: float) -> str:
    return f"{time_ms:.0f}" if time_ms >= 10 else f"{time_ms:.1f}"  # noqa: PLR2004 (two figures say enough)

"""The plot of an evaluation, drawn with matplotlib: three panels with one row for each arm.

The panels show quality with its interval, the ranks of the right notes, and latency. The plot may be shared:
it contains no text of notes or queries.
"""

import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memctl import exits
from memctl.exits import CommandError
from memctl.text import safe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, OTHERS = "#0969da", "#8c959f"  # hybrid in colour, the arms it is compared with in grey
# Rank of the first right note → colour, legend; darker is better.
STANDING = {
    "1": ("#0550ae", "first"),
    "2-3": ("#4c9bf0", "2 to 3"),
    "4-10": ("#b6dbff", "4 to 10"),
    "none": ("#e6e8eb", "not in 10"),
}
DEPTH = 10  # ranks that the report judges: a page of hits
NARROW = 0.15  # nDCG@10 below which the bar is too short to hold its figure
SHORTEST_MS = 0.01  # a logarithmic axis cannot show 0

Fields = dict[str, Any]


def write(report: Fields, target: Path) -> None:
    """Write the plot of a report to an SVG file, and say so. Raises CommandError."""
    _save(figure(report), target)


def write_days(hits: Mapping[str, int], target: Path) -> None:
    """Write the number of hits of each day (YYYY-MM-DD) to an SVG file, and say so. Raises CommandError."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(12, 2.5), layout="constrained")
    axes = drawn.subplots()
    axes.bar([date.fromisoformat(day).toordinal() for day in hits], list(hits.values()), color=OURS)
    axes.xaxis.set_major_formatter(lambda ordinal, _: date.fromordinal(max(1, round(ordinal))).isoformat())
    axes.set_ylabel("hits")
    _save(drawn, target)


def _save(drawn: "Figure", target: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):  # text stays text, which can be searched and copied
        try:
            drawn.savefig(target, format="svg")
        except OSError as error:
            raise CommandError(f"{target} cannot be written: {error.strerror}", exits.STORAGE) from error
    print(f"memctl: drawn: {safe(str(target))}", file=sys.stderr)


def figure(report: Fields) -> "Figure":
    """Return the plot as a matplotlib figure."""
    from matplotlib.figure import Figure

    arms = report["arms"]
    drawn = Figure(figsize=(12, 2.2 + 0.45 * len(arms)), layout="constrained")
    drawn.suptitle(headline(report), fontweight="bold")
    quality, ranks, times = drawn.subplots(1, 3, sharey=True)

    quality.set(title="nDCG@10", xlabel="1 is a perfect order; lines: 95 % intervals", xlim=(0, 1))
    for row, (arm, facts) in enumerate(arms.items()):
        value = facts["measures"]["ndcg@10"]
        low, high = facts["interval"] or (value, value)
        quality.barh(row, value, color=_colour(arm))
        quality.plot([low, high], [row, row], color="black", marker="|")
        ink = "white" if arm == "hybrid" and value > NARROW else "black"
        quality.annotate(f"{value:.2f}", (0, row), (4, 0), textcoords="offset points", va="center", color=ink)

    ranks.set(title="Rank of the first right note", xlim=(0, 100), xlabel="% of the questions")
    total = len(report["results"])
    left = [0.0] * len(report["arms"])
    for place, (colour, label) in STANDING.items():
        shares = [100 * standing(report, arm)[place] / total for arm in report["arms"]]
        ranks.barh(range(len(shares)), shares, left=left, color=colour, label=label)
        left = [begin + share for begin, share in zip(left, shares, strict=True)]
    ranks.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=len(STANDING), frameon=False)

    times.set(title="Time to the answer, ms", xlabel="dot: half are faster; line: to 95 of 100", xscale="log")
    times.margins(x=0.3)  # room for the last label
    for row, (arm, facts) in enumerate(arms.items()):
        p50, p95 = (max(facts["latency_ms"][name], SHORTEST_MS) for name in ("p50", "p95"))
        times.plot([p50, p95], [row, row], color=_colour(arm), linewidth=4, marker="o", markevery=[0])
        label = f"{_ms(p50)} to {_ms(p95)}"
        times.annotate(label, (p50, row), xytext=(0, 7), textcoords="offset points")
    quality.invert_yaxis()  # first arm at the top
    quality.set_yticks(
        range(len(arms)), [f"{arm.partition('@')[0]} *" if "@" in arm else arm for arm in arms]
    )
    return drawn


def headline(report: Fields) -> str:
    """Return one line with the number of questions and their origin."""
    amount = len(report["results"])
    questions = f"{amount:,} question{'' if amount == 1 else 's'}"
    starred = f"; * with {report['compared']['model']}" if "compared" in report else ""
    if report["questions"]["from"] == "headings":
        return f"{questions} from headings of {report['questions']['notes']:,} notes, held out{starred}"
    return f"{questions} of a golden file{starred}"


def standing(report: Fields, arm: str) -> dict[str, int]:
    """Return how many questions have their first right source at rank 1, 2 to 3, 4 to 10, or beyond."""
    found = dict.fromkeys(("1", "2-3", "4-10", "none"), 0)
    for row in report["results"]:
        rank = row["arms"][arm]["rank"] or DEPTH + 1
        found["1" if rank == 1 else "2-3" if rank <= 3 else "4-10" if rank <= DEPTH else "none"] += 1  # noqa: PLR2004
    return found


def _colour(arm: str) -> str:
    return OURS if arm == "hybrid" else OTHERS


def _ms(time_ms: float) -> str:
    return f"{time_ms:.0f}" if time_ms >= 10 else f"{time_ms:.1f}"  # noqa: PLR2004 (two digits suffice)

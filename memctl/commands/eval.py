"""`memctl eval`: start `python -m memd.eval` and show what that has measured."""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memctl import child, exits, model_store, workspaces
from memctl.arguments import count, text, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output import plot
from memctl.output.caveats import reasons
from memctl.output.eval import failed, failures, people
from memctl.output.status import counted
from memctl.output.text import wants_colour

QUESTIONS = 200  # so many make an interval of about ±0.06, and take seconds to ask

# Figures of the report, as people write them; the last one only where lines are judged.
PASSAGES = "passage@10"
SHOWN = {
    "ndcg@10": "nDCG@10",
    "recall@1": "recall@1",
    "recall@5": "recall@5",
    "recall@10": "recall@10",
    "mrr@10": "MRR@10",
    PASSAGES: PASSAGES,
}
OURS = "hybrid"  # what a user gets who asks for nothing else; gates are about it

Fields = dict[str, Any]


def arguments(parser: ArgumentParser) -> None:
    """Options of `memctl eval`."""
    asked = parser.add_argument_group("questions").add_mutually_exclusive_group()
    asked.add_argument(
        "--golden", type=Path, metavar="FILE", help='JSON lines: {"query": …, "path": …, "line": …}'
    )
    asked.add_argument(
        "--headings", type=count, nargs="?", const=QUESTIONS, metavar="N",
        help=f"N headings of your notes, which are held out (the default, N = {QUESTIONS})",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=count, default=1, metavar="N", help="another one asks for other headings"
    )
    parser.add_argument(
        "--max-notes",
        type=count,
        metavar="N",
        help="copy a sample of N notes; among fewer, finding is easier",
    )
    parser.add_argument(
        "--compare", type=text, metavar="MODEL",
        help=f"ask another model as well: a name of memctl models list, or {model_store.SHIPPED}",
    )  # fmt: skip
    parser.add_argument("--no-grep", action="store_true", help="leave grep out")
    workspace_option(parser)
    parser.add_argument("--json", action="store_true", help="one object: every figure and every result")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw quality, ranks and times")
    parser.add_argument(
        "--failures", action="store_true", help="list the questions that hybrid did not answer"
    )
    parser.add_argument(
        "--fail-under", type=gate, action="append", default=[], metavar="[METRIC=]X",
        help="exit with 9 where hybrid is below X; METRIC is ndcg@10 or another column, repeatable",
    )  # fmt: skip
    parser.epilog = _EPILOG


_EPILOG = """\
Measures memd (hybrid, vector and keyword search) and plain grep on your own notes.

It runs in a process of its own and asks an index of its own, which is deleted at the end, also after Ctrl-C:
no daemon is needed, started or disturbed. Where your index lies still, it begins with a copy of that in
memd's state folder (only you may read it), so that only what differs is embedded; else all is.

--golden asks your notes as they are. A line of FILE names a query and what answers it, relative to the
workspace; "path" may be a list, blank lines and # comments are passed over. Lines that ask the same are one
question. The table judges notes: a note counts as found wherever in it the hit is, so that grep can be
compared. Where "line" is given, passage@10 says how often one of the first 10 hits holds that very line. A
path that is no source is named, and counts as not found.

--headings makes questions of what your notes call their parts. Headings are part of what is searched, so the
chosen ones are held out: your notes are copied into memd's state folder (only you may read it), without
these headings, without any line that says nothing else (titles in front matter, tables of contents), and
with other file names for the notes in question. The copy is indexed with your settings, asked, and deleted.
Nothing is written to your notes. Left out are headings with fewer than two words that say
something ("Notes", "TODO"), that stand in several notes, or have next to nothing below them; one a note. A
day in front of a file's name stays, so dated notes lose score with age, as they do for you.

grep finds the notes with most of the query's words, then with most matching lines, as `grep -ric` shows them;
function words are not looked for. nDCG@10, recall@k and MRR@10 are those of trec_eval; intervals are
bootstrapped over the questions. Times are those of whole answers (30 hits are asked for), without the
socket's fraction of a millisecond, and of grep's processes.

--compare answers whether another model is worth it: both embed the same notes and answer the same questions.
It shows both tables, how much better the other model is and whether that may be chance, and how long a chunk
takes each. The workspace keeps its model (memctl models use changes it).

Exit code 0; 9 where hybrid is below --fail-under; 1 where no heading makes a question.

examples:
  memctl eval
  memctl eval --golden golden.jsonl --failures
  memctl eval --compare multilingual-e5-small
  memctl eval --headings 500 --plot quality.svg --json > quality.json
  memctl eval --golden golden.jsonl --fail-under 0.6 --fail-under recall@10=0.8
"""


def run(args: Namespace) -> int:
    """Have it measured, hold it against what was demanded, show it."""
    _check(args)
    workspace = workspaces.find(args.workspace)
    started = time.monotonic()
    measured = child.report(_command(args, workspace), "the measurement")
    measured = {
        "workspace": measured["workspace"],
        "took_s": round(time.monotonic() - started, 1),
        **measured,
    }
    measured["gates"] = _gates(measured, args)
    _show(measured, args)
    return exits.OK if all(one["ok"] for one in measured["gates"]) else exits.UNHEALTHY


def _command(args: Namespace, workspace: str) -> list[str]:
    options = [f"--seed={args.seed}"]
    if args.golden:
        options.append(f"--golden={args.golden}")
    else:
        options.append(f"--headings={args.headings or QUESTIONS}")
    if args.max_notes:
        options.append(f"--max-notes={args.max_notes}")
    if args.compare:
        options.append(f"--compare={_model(args.compare)}")
    if args.no_grep:
        options.append("--no-grep")
    if args.golden and any(metric == PASSAGES for metric, _ in args.fail_under):
        options.append("--need-lines")
    return ["memd.eval", *options, "--", workspace]


def _model(name: str) -> str:
    """Return what memd calls a model: its folder, or the shipped one's name."""
    if name == model_store.SHIPPED:
        return name
    model_store.record_of(name)
    return str(model_store.folder_of(name))


def gate(raw: str) -> tuple[str, float]:
    """A figure that must be reached: X, or METRIC=X."""
    name, equals, value = text(raw).rpartition("=")
    metric = name.strip().lower() if equals else "ndcg@10"
    if metric not in SHOWN:
        raise ArgumentTypeError(f"{raw!r}: there is no figure {name!r}; there are {', '.join(SHOWN)}")
    try:
        wanted = float(value)
    except ValueError:
        wanted = -1
    if not 0 <= wanted <= 1:
        raise ArgumentTypeError(f"{raw!r} is not a number from 0 to 1, as 0.6 or recall@10=0.8")
    return metric, wanted


def _check(args: Namespace) -> None:
    """Refuse what would fail only after minutes of work."""
    target: Path | None = args.plot
    if target and target.suffix.lower() != ".svg":
        raise CommandError(f"{target}: the plot is an SVG, name it so: {target.with_suffix('.svg')}")
    if target and (target.is_dir() or not os.access(target.parent, os.W_OK)):
        raise CommandError(f"{target} cannot be written: is there a folder {target.parent}, and is it yours?")
    if target and find_spec("matplotlib") is None:
        raise CommandError(
            "--plot draws with matplotlib, which is not installed: pip install '.[plot]' in a clone of memd"
        )
    if args.max_notes and args.golden:
        raise CommandError(
            "--max-notes samples what --headings copies; a golden file asks the notes as they are"
        )


def _gates(measured: Fields, args: Namespace) -> list[Fields]:
    """Hold hybrid against what was demanded."""
    figures = measured["arms"][OURS]["measures"]
    return [
        {"metric": metric, "wanted": wanted, "found": figures[metric], "ok": figures[metric] >= wanted}
        for metric, wanted in args.fail_under
    ]


def _show(measured: Fields, args: Namespace) -> None:
    """Print the report, and write the plot."""
    colour = wants_colour()
    if args.json:
        common.print_json(measured)
    else:
        sys.stdout.write(people(measured, colour=colour))
        if args.failures:
            asked = len(measured["results"])
            held = measured["questions"]["from"] == "headings"
            sys.stdout.write(failures(failed(measured), asked, held_out=held, colour=colour))
    if args.plot:
        try:
            plot.write(measured, args.plot)
        except OSError as error:
            raise CommandError(f"{args.plot} cannot be written: {error.strerror}", exits.STORAGE) from error
        common.note(f"drawn: {args.plot}")
    for arm, facts in measured["arms"].items():
        if facts["degraded"]:
            amount = max(facts["degraded"].values())
            common.note(f"{arm}: {counted(amount, 'answer')} degraded: {reasons(facts['degraded'])}")
    for one in measured["gates"]:
        if not one["ok"]:
            shown = SHOWN[one["metric"]]
            common.note(f"{shown} of hybrid is {one['found']:.3f}, below {one['wanted']:g}")

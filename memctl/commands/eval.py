"""`memctl eval`: measure search quality by running `python -m memd.eval`, and show its report."""

import os
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memctl import child, exits, model_store, workspaces
from memctl.arguments import count, filled_path, flag, number, workspace_option
from memctl.commands import common
from memctl.exits import CommandError
from memctl.output import plot
from memctl.output.caveats import reasons
from memctl.output.eval import failed, failures, people
from memctl.output.status import counted
from memctl.text import any_text, wants_colour
from memctl.versions import install_line

QUESTIONS = 200  # gives an interval of about ±0.06, and takes seconds

# Measures of the report → their usual spelling; the last one only if lines are judged.
PASSAGES = "passage@10"
SHOWN = {name.lower(): name for name in ("nDCG@10", "recall@1", "recall@5", "recall@10", "MRR@10", PASSAGES)}
OURS = "hybrid"  # the default mode of search, to which --fail-under applies

Fields = dict[str, Any]


def arguments(parser: ArgumentParser) -> None:
    questions = parser.add_argument_group("questions").add_mutually_exclusive_group()
    questions.add_argument(
        "--golden", type=filled_path, metavar="FILE", help='JSON lines: {"query": …, "path": …, "line": …}'
    )
    questions.add_argument(
        "--headings", type=count, nargs="?", const=QUESTIONS, metavar="N",
        help=f"N headings of your notes, which are held out (the default, N = {QUESTIONS})",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=count, default=1, metavar="N", help="another seed selects other headings"
    )
    parser.add_argument(
        "--max-notes", type=count, metavar="N",
        help="copy only a sample of N notes; with fewer notes, search is easier",
    )  # fmt: skip
    parser.add_argument(
        "--compare", type=any_text, metavar="MODEL",
        help=f"compare with another model: a name of memctl models list, or {model_store.SHIPPED}",
    )  # fmt: skip
    flag(parser, "--no-grep", "do not measure grep")
    workspace_option(parser)
    flag(parser, "--json", "one object: every figure and every result")
    parser.add_argument("--plot", type=filled_path, metavar="FILE.svg", help="draw quality, ranks and times")
    flag(parser, "--failures", "list the questions that hybrid did not answer")
    parser.add_argument(
        "--fail-under", type=gate, action="append", default=[], metavar="[METRIC=]X",
        help="exit with 9 if hybrid is below X; METRIC is ndcg@10 or another column, repeatable",
    )  # fmt: skip
    parser.epilog = _EPILOG


_EPILOG = """\
Measures memd (hybrid, vector and keyword search) and plain grep on your own notes.

The measurement runs in a separate process with a separate index, which is deleted at the end, also after
Ctrl-C; no daemon is needed, started or disturbed. If your index is not changing, a copy of it in memd's state
folder (readable only by you) is used, and only new text is embedded; otherwise all notes are embedded.

--golden searches your notes as they are. Each line of FILE names a query and the paths that answer it,
relative to the workspace; "path" may be a list; blank lines and # comments are ignored. Lines with the same
query are one question. The table judges notes: a hit anywhere in a note counts, which makes grep comparable.
If "line" is given, passage@10 is the share of questions with that line in one of the first 10 hits. A path
that is not a source is reported, and counts as not found.

--headings takes questions from the headings of your notes. Headings are searched, too, so the selected ones
are held out: your notes are copied into memd's state folder (readable only by you), without these headings,
without lines that only repeat them (titles in front matter, tables of contents), and with other file names
for the notes in question. The copy is indexed with your settings, searched, and deleted. Your notes are not
changed. A heading is left out if it has fewer than two meaningful words ("Notes", "TODO"), occurs in several
notes, or has almost no text below it; one heading is used per note. A date at the start of a file name is
kept, so diaries lose score with age, as in your searches.

grep ranks notes by the number of query words they contain, then by matching lines, as `grep -ric` counts
them; function words are ignored. nDCG@10, recall@k and MRR@10 are defined as in trec_eval; intervals are
bootstrapped over the questions. Times cover whole answers (of 30 hits), without the socket's fraction of a
millisecond, and whole grep processes.

--compare shows whether another model is worth it: both models embed the same notes and answer the same
questions. The output has both tables, the gain of the other model, whether it may be chance, and the time
that each model takes for a chunk. The workspace keeps its model (memctl models use changes it).

Exit code 0; 9 if hybrid is below --fail-under; 1 if no heading can be used as a question.

examples:
  memctl eval
  memctl eval --golden golden.jsonl --failures
  memctl eval --compare multilingual-e5-small
  memctl eval --headings 500 --plot quality.svg --json > quality.json
  memctl eval --golden golden.jsonl --fail-under 0.6 --fail-under recall@10=0.8
"""


def run(args: Namespace) -> int:
    """Run the measurement, compare it with --fail-under, and show the report."""
    # Reject options that would fail only after minutes of work.
    check_plot(args.plot)
    if args.max_notes and args.golden:
        raise CommandError(
            "--max-notes samples the notes that --headings copies; --golden searches the notes as they are"
        )
    workspace = workspaces.find(args.workspace)
    started = time.monotonic()
    given = {
        "seed": args.seed,
        "golden": args.golden,
        "headings": None if args.golden else args.headings or QUESTIONS,
        "max-notes": args.max_notes,
        "compare": args.compare and model_store.setting_of(args.compare),
    }
    options = [f"--{name}={value}" for name, value in given.items() if value]
    if args.no_grep:
        options.append("--no-grep")
    if args.golden and any(metric == PASSAGES for metric, _ in args.fail_under):
        options.append("--need-lines")
    measured = child.report(["memd.eval", *options, "--", workspace], "the measurement")
    measured = {
        "workspace": measured["workspace"],
        "took_s": round(time.monotonic() - started, 1),
        **measured,
    }
    figures = measured["arms"][OURS]["measures"]
    measured["gates"] = [
        {"metric": metric, "wanted": wanted, "found": figures[metric], "ok": figures[metric] >= wanted}
        for metric, wanted in args.fail_under
    ]
    _show(measured, args)
    return exits.OK if all(gate["ok"] for gate in measured["gates"]) else exits.UNHEALTHY


def gate(raw: str) -> tuple[str, float]:
    """Parse X or METRIC=X, the least value of a measure."""
    name, equals, value = any_text(raw).rpartition("=")
    metric = name.strip().lower() if equals else "ndcg@10"
    if metric not in SHOWN:
        raise ArgumentTypeError(f"{raw!r}: {name!r} is not a measure; the measures are {', '.join(SHOWN)}")
    wanted = number(value)
    if not 0 <= wanted <= 1:
        raise ArgumentTypeError(f"{raw!r} is not a number from 0 to 1, as 0.6 or recall@10=0.8")
    return metric, wanted


def check_plot(target: Path | None) -> None:
    """Reject a plot that cannot be drawn or written."""
    if target and target.suffix.lower() != ".svg":
        raise CommandError(f"{target}: the plot is an SVG file: name it {target.with_suffix('.svg')}")
    if target and (target.is_dir() or not os.access(target.parent, os.W_OK)):
        raise CommandError(f"{target} cannot be written: is {target.parent} a folder, and writable?")
    if target and find_spec("matplotlib") is None:
        raise CommandError(
            f"--plot draws with matplotlib, which is not installed: {install_line('matplotlib>=3.9')}"
        )


def _show(measured: Fields, args: Namespace) -> None:
    """Print the report and the caveats, and write the plot."""
    colour = wants_colour()
    if args.json:
        common.print_json(measured)
    else:
        sys.stdout.write(people(measured, colour=colour))
        if args.failures:
            total = len(measured["results"])
            held = measured["questions"]["from"] == "headings"
            sys.stdout.write(failures(failed(measured), total, held_out=held, colour=colour))
    if args.plot:
        plot.write(measured, args.plot)
    for arm, facts in measured["arms"].items():
        if facts["degraded"]:
            amount = max(facts["degraded"].values())
            common.note(f"{arm}: {counted(amount, 'answer')} degraded: {reasons(facts['degraded'])}")
    for gate in measured["gates"]:
        if not gate["ok"]:
            shown = SHOWN[gate["metric"]]
            common.note(f"{shown} of hybrid is {gate['found']:.3f}, below {gate['wanted']:g}")

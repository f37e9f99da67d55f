"""The program `python -m memd.eval`, started by `memctl eval`: runs one measurement, with progress on stdout.

Output and exit follow memd.process; at its end, for whatever reason, it has deleted all files that it wrote.
"""

import argparse
import logging
import sys
from pathlib import Path

from memd import process
from memd.process import Send


def main() -> int:
    """Measure; return 0 even if the last line reports an error."""
    with process.running() as send:  # before all slow imports
        _measure(_arguments(), send)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m memd.eval", description=__doc__, allow_abbrev=False)
    parser.add_argument("workspace")
    parser.add_argument("--golden", type=Path)
    parser.add_argument("--headings", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-notes", type=int)
    parser.add_argument("--compare", metavar="FOLDER", help="of a model, or the name of the shipped one")
    parser.add_argument("--no-grep", action="store_true")
    parser.add_argument("--need-lines", action="store_true", help="refuse a golden file that names no line")
    return parser.parse_args()


def _measure(args: argparse.Namespace, send: Send) -> None:
    import structlog  # noqa: PLC0415 - a signal during these imports must already be handled

    # The messages of the daemon's modules belong into its log; errors are reported as the result.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    from memctl import paths  # noqa: PLC0415
    from memd.errors import InvalidError  # noqa: PLC0415
    from memd.eval import questions, run  # noqa: PLC0415
    from memd.eval.temporary_index import registered  # noqa: PLC0415

    state_dir = paths.state_dir()
    paths.make_private_dir(state_dir)
    notes = registered(args.workspace, state_dir, paths.config_dir() / "config.toml")
    root = str(notes.place.root)
    topics = questions.load(args.golden, root) if args.golden else []
    if args.need_lines and not any(question.passages for question in topics):
        raise InvalidError(f"--fail-under passage@10: no line of {args.golden} names a line of a note")
    with process.private_folder(state_dir) as folder:
        measurement = run.EvalRun(
            notes,
            folder,
            seed=args.seed,
            with_grep=not args.no_grep,
            note=lambda text: send({"note": text}),
            progress=lambda *parts: send(
                {"progress": dict(zip(("stage", "done", "total"), parts, strict=True))}
            ),
            compared=notes.with_model(args.compare) if args.compare else None,
        )
        if args.golden:
            measured = run.of_golden(measurement, topics, str(args.golden))
        else:
            measured = run.of_headings(measurement, wanted=args.headings, max_notes=args.max_notes)
    send({"report": {"workspace": root, **measured}})


if __name__ == "__main__":
    sys.exit(main())

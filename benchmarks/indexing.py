"""The time until a folder of notes is wholly searchable, and the time of a start when nothing has changed."""

import shutil
from pathlib import Path
from time import perf_counter

from benchmarks import report
from benchmarks.home import home


def main() -> None:
    parser = report.arguments(__doc__)
    parser.add_argument("folder", type=Path, help="notes; they are copied and stay as they are")
    parser.add_argument("--provider", choices=("onnx", "none"), default="onnx", help="none: words alone")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    with home() as place:
        shutil.copytree(
            options.folder, place.notes, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git")
        )
        for path in (place.notes, *place.notes.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)  # a read-only copy could not become a workspace
        (place.notes / "memory").mkdir(exist_ok=True)
        (place.notes / "memory" / "config.toml").write_text(f'provider = "{options.provider}"\n')

        def step(what: str, *, restart: bool = False) -> None:
            if restart:
                place.stop()
                place.start()
            with place.client() as client:
                started = perf_counter()
                answer = place.index(client)
                took_s = perf_counter() - started
            counts = {key: answer[key] for key in ("sources", "chunks", "vectors", "skipped")}
            peak, now = f"{place.memory_mb():.0f}", f"{place.memory_mb('VmRSS'):.0f}"
            rows.append({"step": what, "seconds": f"{took_s:.2f}", **counts, "peak MB": peak, "now MB": now})

        step("from nothing to searchable")
        step("again, nothing changed")
        step("after a restart, nothing changed", restart=True)
        size_mb = (
            sum(path.stat().st_size for path in (place.folder / "state").rglob("*") if path.is_file()) / 1e6
        )
    print(f"{options.folder.name}: index of {size_mb:.1f} MB")
    report.show(
        "indexing", rows, options, folder=options.folder.name, provider=options.provider, index_mb=size_mb
    )


if __name__ == "__main__":
    main()

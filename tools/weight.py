"""Count the lines of each package, so that its ceiling can be held: `python -m tools.weight`."""

import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

# What a package's lines are read in; the plugin's Lua and the archives' JSON are counted by nobody's eye.
SUFFIXES = (".py",)


def tracked(folder: str) -> list[Path]:
    """The files that git tracks below *folder*, or all of them in an unpacked sdist, which has no git."""
    run = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--", folder]
    listed = subprocess.run(run, capture_output=True, text=True, check=False)  # noqa: S603
    if listed.returncode:
        return [path for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    return [path for name in listed.stdout.split("\0") if name and (path := REPOSITORY / name).is_file()]


def lines(folder: str) -> int:
    """The lines of Python in *folder*, blank ones and comments included: all that a reader scrolls past."""
    sources = (path for path in tracked(folder) if path.suffix in SUFFIXES)
    return sum(len(path.read_bytes().splitlines()) for path in sources)


def size_bytes(folder: str) -> int:
    """The bytes of all files in *folder*."""
    return sum(path.stat().st_size for path in tracked(folder))


def main() -> None:
    """Print the lines of each package, and of each package of memd."""
    for package in ("memd", "memctl", "tests", "benchmarks", "tools"):
        print(f"{lines(package):7,} {package}")
    for folder in sorted(path for path in (REPOSITORY / "memd").iterdir() if path.is_dir()):
        print(f"{lines(f'memd/{folder.name}'):7,} memd/{folder.name}")
    print(f"{size_bytes('benchmarks/runs'):11,} bytes of benchmarks/runs")


if __name__ == "__main__":
    main()

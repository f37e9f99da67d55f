"""What an installation costs: the time to the first right answer, disk, memory while idle, the tools' tokens.

A new home and a new clone, in which the README's first command runs as it is. pip's cache is off, so that the
time contains the download from the package index that pip is configured with; on a loaded machine it is an
upper bound. Then the daemon starts once more, to see which modules it and memctl import. The kept run is
published: docs/performance.md has a row a version, docs/installing.md the sizes of the parts.

    python -m benchmarks.footprint --keep
"""

import importlib.metadata
import json
import os
import re
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.home import ROOT
from memctl import __version__
from memctl.client import Client
from memctl.mcp import tools

ANSWER = "decisions/no-kubernetes.md"  # to the README's first question
IDLE_S = 30.0  # the vectors of the sample are made by then, and the daemon has no work
MOST_S = 1800.0  # arbitrary
MEGA = 1e6  # bytes
OF_EVERY_VENV = ("pip", "setuptools")


def main() -> None:
    options = report.arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory(prefix="memd-bench-") as folder:
        stranger = Stranger(Path(folder).resolve())
        try:
            figures = stranger.first_session()
            imported = stranger.imported()
        finally:
            stranger.run("memd/.venv/bin/memctl uninstall --purge --yes")
        parts = stranger.parts(imported)
    sizes = {key: sum(part[key] for part in parts) for key in ("files MB", "compiled MB")}
    figures = {
        "version": __version__,
        "first right answer s": figures["first right answer s"],
        "processor s": figures["processor s"],
        "installed by uv MB": round(sizes["files MB"], 1),
        "installed by pip MB": round(sizes["files MB"] + sizes["compiled MB"], 1),
        "idle memory MB": figures["idle memory MB"],
        "own idle memory MB": figures["own idle memory MB"],
        "tokens of the tools": tokens(),
    }
    print(report.table(parts))
    report.show("footprint", [figures], options, parts=parts)


def tokens() -> int:
    """Return what the list of tools costs a conversation, in the estimate of `recall`: four bytes a token."""
    text = json.dumps(tools.listed(), ensure_ascii=False, separators=(",", ":"))
    return len(text.encode()) // tools.BYTES_PER_TOKEN


class Stranger:
    """A home with a clone of this repository, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "runtime").mkdir(mode=0o700)
        kept = {
            name: os.environ[name] for name in os.environ if not name.startswith(("MEMD_", "XDG_", "PYTHON"))
        }
        self._environment = kept | {
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "XDG_RUNTIME_DIR": str(folder / "runtime"),
            "PIP_NO_CACHE_DIR": "1",
        }
        self.run(f"git clone -q '{ROOT}' memd")

    def run(self, command: str, **more: str) -> str:
        """Run a line of a shell, and return what it printed."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self._folder, env=self._environment | more,
            capture_output=True, text=True, timeout=MOST_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{command}\nended with {done.returncode}: {done.stderr}")
        return done.stdout + done.stderr

    def first_session(self) -> dict[str, Any]:
        """Run the README's first command; return its time, and the daemon's memory some time later."""
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        found = re.search(r"(?m)^python3 -m venv .*memctl search.*$", readme)
        assert found
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = self.run(f"cd memd && {found[0]}")
        answered_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(printed)
        if not re.search(rf"(?m)^ *1  .*{ANSWER}", printed):
            raise SystemExit("the first hit is not the right one")
        time.sleep(IDLE_S)
        with Client.connect(self._folder / "runtime" / "memd" / "memd.sock") as client:
            pid = client.call("ping")["pid"]
        memory = Path(f"/proc/{pid}/status").read_text()
        whole_kb, own_kb = (
            int(re.findall(rf"{name}:\s+(\d+) kB", memory)[0]) for name in ("VmRSS", "RssAnon")
        )
        return {
            "first right answer s": round(answered_s, 1),
            "processor s": round(used_s, 1),  # without the daemon's own
            "idle memory MB": round(whole_kb * 1024 / MEGA, 1),
            "own idle memory MB": round(own_kb * 1024 / MEGA, 1),
        }

    def imported(self) -> set[str]:
        """Return the modules that a start, a search and a saved note import, in memctl and in the daemon."""
        memctl = "memd/.venv/bin/memctl"
        self.run(f"{memctl} stop")
        notes = next(path.parents[1] for path in self._folder.glob("tmp.*/decisions/no-kubernetes.md"))
        steps = [
            f"{memctl} search -w {notes} kubernetes",
            f"echo '# New' > {notes}/new.md",
            f"{memctl} sync -w {notes}",
            f"{memctl} index -w {notes}",
        ]
        printed = self.run(" && ".join(steps), PYTHONPROFILEIMPORTTIME="1")
        [log] = self._folder.glob(".local/state/memd/memd.log")
        lines = printed + log.read_text(errors="replace")
        return {name.split(".")[0] for name in re.findall(r"(?m)^import time: .*\| +(\S+)$", lines)}

    def parts(self, imported: set[str]) -> list[dict[str, Any]]:
        """Return each distribution of the environment with its size, the largest first."""
        [packages] = (self._folder / "memd/.venv/lib").glob("python3*/site-packages")
        parts = []
        for one in importlib.metadata.distributions(path=[str(packages)]):
            name = one.metadata["Name"].lower()
            if name in OF_EVERY_VENV:
                continue
            files = [Path(str(one.locate_file(file))) for file in one.files or ()]
            sizes = {file: file.stat().st_size for file in files if file.exists()}
            compiled = sum(size for file, size in sizes.items() if file.suffix == ".pyc")
            parts.append({
                "package": name,
                "files MB": round((sum(sizes.values()) - compiled) / MEGA, 2),
                "compiled MB": round(compiled / MEGA, 2),
                "imported": "yes" if imported & _modules(one) else "no",
            })  # fmt: skip
        return sorted(parts, key=lambda part: -part["files MB"] - part["compiled MB"])


def _modules(one: importlib.metadata.Distribution) -> set[str]:
    """Return the names under which the code of a distribution is imported."""
    return {file.parts[0].partition(".")[0] for file in one.files or () if file.suffix in (".py", ".so")}


if __name__ == "__main__":
    main()

"""What memctl knows of memd is made of memd's tables, wherever it is installed."""

import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tools import generate

ROOT = Path(__file__).parents[1]
# Fails where anything is imported beyond the standard library, msgspec and this checkout.
WITHOUT_LIBRARIES = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "msgspec", "memd", "memctl", "tools"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refuse())
from tools import generate
print(len(generate.generated()))
"""
BUILD = "import sys, hatchling.build as hatch; print(getattr(hatch, f'build_{sys.argv[1]}')(sys.argv[2]))"
IMPORT = """
import memd.daemon, memd.api.dispatch, memctl.__main__
from memctl import client, filter_keys, methods, types
from memctl.mcp import tools
tools.listed()
print(methods.__file__)
"""


@pytest.mark.parametrize("path", generate.generated(), ids=str)
def test_a_generated_file_is_what_its_sources_say(path):
    """After a change of a struct, of the methods or of the filters, or a pull of one."""
    made = ROOT / path
    is_current = made.is_file() and made.read_text(encoding="utf-8") == generate.generated()[path]
    assert is_current, f"{path} is older than its sources: run {generate.COMMAND}"


def test_generating_needs_msgspec_alone():
    """Where a wheel is built there is no SQLite of ours, no numpy and no runtime of the model."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARIES], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{len(generate.generated())}\n", done.stderr


def test_a_wheel_and_an_editable_install_have_what_is_generated(tmp_path):
    """Built of what an sdist has, without these files, and imported in environments of their own."""
    clone = _fresh_tree(tmp_path / "clone")
    for kind in ("wheel", "editable"):
        for path in generate.generated():
            (clone / path).unlink(missing_ok=True)
        site_packages = _installed(_built(kind, clone, tmp_path / kind), tmp_path / f"{kind}-env")
        methods = _run(tmp_path, tmp_path / f"{kind}-env" / "bin" / "python", "-c", IMPORT)
        assert Path(methods).is_relative_to(site_packages if kind == "wheel" else clone)


def _fresh_tree(folder: Path) -> Path:
    """Copy what an sdist takes, but for the tests, and for the model, which would take most of the time."""
    folder.mkdir()
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    for name in ["pyproject.toml", ".gitignore", *build["targets"]["sdist"]["include"]]:
        path = name.strip("/")
        if (ROOT / path).is_dir() and path != "tests":
            shutil.copytree(
                ROOT / path, folder / path, ignore=shutil.ignore_patterns("__pycache__", "*.onnx")
            )
        elif path != "tests":
            shutil.copy(ROOT / path, folder / path)
    (folder / "memd/embedding/model/model.onnx").write_bytes(b"")  # the bill of materials has its hash
    return folder


def _built(kind: str, source: Path, folder: Path) -> Path:
    """Have hatch build, as pip has it."""
    folder.mkdir(exist_ok=True)
    return folder / _run(source, sys.executable, "-c", BUILD, kind, folder)


def _installed(wheel: Path, environment: Path) -> Path:
    """Unpack a wheel into a new environment, which has the libraries of this one, and no memd of its own."""
    venv.create(environment)
    [site_packages] = environment.glob("lib/python*/site-packages")
    # In a folder that a .pth file names no other .pth file is read: this environment's memd is not there.
    (site_packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site_packages)
    return site_packages


def _run(folder: Path, *command: object) -> str:
    """Run a program in *folder*; return the last line that it prints."""
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]

"""What is built: a wheel and an sdist with all that they need, the same bytes each time."""

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from patience import ran

from memctl import __version__, model_store, versions
from memctl.commands import COMMANDS, init
from tools import generate, sbom

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODEL_PROJECT = tomllib.loads((ROOT / "models/pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILD = "import sys, hatchling.build as hatch; hatch.build_wheel(sys.argv[1]); hatch.build_sdist(sys.argv[1])"
BUILD_EDITABLE = "import sys, hatchling.build as hatch; print(hatch.build_editable(sys.argv[1]))"
IMPORT = """
import memd.daemon, memd.api.dispatch, memctl.__main__
from memctl import client, filter_keys, methods, types
from memctl.mcp import tools
tools.listed()
print(methods.__file__)
"""
# In place of the model, which would take most of a build's time.
MODEL = b"a model"


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """Two copies of this tree, made at other times."""
    copies = [tmp_path_factory.mktemp("tree") / f"memd-{number}" for number in (1, 2)]
    for number, tree in enumerate(copies, start=1):
        _copied(tree)
        for path in tree.rglob("*"):
            os.utime(path, (number * 1e9, number * 1e9))
    return copies


@pytest.fixture(scope="module")
def builds(trees, tmp_path_factory):
    """Two folders, each with a wheel and an sdist of its own copy of this tree."""
    folders = []
    for tree in trees:
        folders.append(tmp_path_factory.mktemp("built"))
        done = _built(tree, folders[-1])
        assert done.returncode == 0, done.stderr
    return folders


def _copied(tree: Path) -> None:
    for name in _tracked():
        if name.startswith("benchmarks/runs/"):  # megabytes, and of no weight for this
            continue
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".onnx"):
            (tree / name).write_bytes(MODEL)
        else:
            shutil.copyfile(ROOT / name, tree / name)


def _tracked() -> list[str]:
    listed = ran(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def _wheel(folder: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_two_builds_are_the_same_bytes(builds):
    """From two copies with other times: who has the source can check what was published."""
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in builds)
    assert first.keys() == {
        f"memd_search-{__version__}-py3-none-any.whl",
        f"memd_search-{__version__}.tar.gz",
    }
    assert first == second


def test_a_wheel_and_an_editable_install_have_what_is_generated(builds, trees, tmp_path):
    wheel = next(builds[0].glob("*.whl"))
    for path in generate.generated():  # the wheel's build has made them
        (trees[0] / path).unlink()
    editable = tmp_path / _run(trees[0], sys.executable, "-c", BUILD_EDITABLE, tmp_path)
    for kind, built in (("wheel", wheel), ("editable", editable)):
        site_packages = _installed(built, tmp_path / kind)
        methods = _run(tmp_path, tmp_path / kind / "bin" / "python", "-c", IMPORT)
        assert Path(methods).is_relative_to(site_packages if kind == "wheel" else trees[0])


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
    done = ran([*map(str, command)], cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_the_wheel_runs_everywhere_and_has_a_manual_page_for_each_command(builds):
    with _wheel(builds[0]) as wheel:
        names = set(wheel.namelist())
        assert not [name for name in names if name.endswith((".so", ".pyd", ".dylib"))]
        pages = {name.rpartition("/")[2] for name in names if "/data/share/man/man1/" in name}
        assert pages == {"memctl.1", "memd.1", *(f"memctl-{command}.1" for command in COMMANDS)}
        [scripts] = [name for name in names if name.endswith("entry_points.txt")]
        assert set(re.findall(r"(?m)^([\w-]+) =", wheel.read(scripts).decode())) == {
            "memctl",
            "memd",
            "memd-search",
        }


def test_the_bill_of_materials_names_the_model_and_each_library(builds):
    """PEP 770: in the wheel's metadata, with the hash of the model that the wheel has, and licences."""
    with _wheel(builds[0]) as wheel:
        [name] = [name for name in wheel.namelist() if ".dist-info/sboms/" in name]
        bill = json.loads(wheel.read(name))
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["version"] == __version__
    model, *libraries = bill["components"]
    assert model["licenses"] == [{"expression": "Apache-2.0"}]
    assert model["components"][0]["hashes"][0]["content"] == hashlib.sha256(MODEL).hexdigest()
    required = {sbom.normalized(Requirement(one).name) for one in PROJECT["dependencies"]}
    assert {one["name"] for one in libraries} == required
    assert all(one["licenses"][0]["expression"] for one in libraries)


def test_the_source_package_has_every_file_of_the_repository(builds):
    [path] = builds[0].glob("*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    tracked = {name for name in _tracked() if not name.startswith("benchmarks/runs/")}
    assert tracked - packed == set()


@pytest.fixture(scope="module")
def model_builds(tmp_path_factory):
    """As `builds`, of the package of the multilingual model, whose files are stand-ins."""
    folders = []
    for number in (1, 2):
        tree = tmp_path_factory.mktemp("models") / "models"
        for name in _tracked():
            if name.startswith("models/"):
                path = tree / name.removeprefix("models/")
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, path)
        for name in ("config.json", "memd.json", "memd.sentencepiece", "model.onnx", "model.onnx_data"):
            (tree / "memd_model_multilingual" / name).write_bytes(name.encode())
        for path in tree.rglob("*"):
            os.utime(path, (number * 1e9, number * 1e9))
        folders.append(tmp_path_factory.mktemp("built"))
        done = _built(tree, folders[-1])
        assert done.returncode == 0, done.stderr
    return folders


def _built(tree: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-c", BUILD, folder], cwd=tree)


def test_the_package_of_the_other_model_has_its_notice_and_bill_and_is_the_same_bytes(model_builds):
    first, second = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in model_builds)
    assert first == second
    with _wheel(model_builds[0]) as wheel:
        names = wheel.namelist()
        assert [name for name in names if name.endswith("licenses/memd_model_multilingual/NOTICE")]
        [bill] = [name for name in names if ".dist-info/sboms/" in name]
        model, *libraries = json.loads(wheel.read(bill))["components"]
        for one in model["components"]:
            assert one["hashes"][0]["content"] == hashlib.sha256(wheel.read(one["name"])).hexdigest()
    assert len(model["components"]) == 5
    required = {Requirement(one).name for one in MODEL_PROJECT["dependencies"]}
    assert {one["name"] for one in libraries} == required
    rows = sbom.licences(ROOT)
    assert all(rows[one["name"]] == one["licenses"][0]["expression"] for one in libraries)


def test_without_the_files_of_the_other_model_its_package_is_not_built(tmp_path):
    """They are in no commit: the error names the command that makes them."""
    tree = tmp_path / "models"
    shutil.copytree(
        ROOT / "models", tree, ignore=shutil.ignore_patterns("*.onnx*", "*.json", "*.sentencepiece")
    )
    done = _built(tree, tmp_path)
    assert done.returncode != 0
    assert "run python models/build.py" in done.stderr


def test_every_library_is_in_the_table_of_licences_with_what_it_states_itself():
    """Of memd and its extras, with the libraries that these need, as far as they are installed here."""
    rows = sbom.licences(ROOT)
    extras = PROJECT["optional-dependencies"]
    reqs = [
        *PROJECT["dependencies"],
        *(one for name in ("models", "ann", "plot", "milvus") for one in extras[name]),
        *MODEL_PROJECT["dependencies"],
    ]
    installed = _with_their_own(reqs)
    assert len(installed) > 30
    assert sorted(installed.keys() - rows.keys()) == []
    assert [name for name, found in installed.items() if not _agree(rows[name], found)] == []


def _with_their_own(requirements: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """Return the installed distributions that *requirements* need, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [Requirement(one) for one in requirements]
    while waiting:
        wanted = waiting.pop()
        name = sbom.normalized(wanted.name)
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for one in map(Requirement, found[name].requires or []):
            extras = wanted.extras or {""}
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(one)
    return found


def _agree(row: str, found: importlib.metadata.Distribution) -> bool:
    """Say whether a distribution's licence is that of the row; without an SPDX expression, its family."""
    if expression := found.metadata.get("License-Expression"):
        return row == expression
    stated = [(found.metadata.get("License") or "").partition("\n")[0]]
    stated += [one for one in found.metadata.get_all("Classifier") or () if one.startswith("License ::")]
    others = {"MPL": "MPL|Mozilla", "PSF": "Python Software Foundation", "LicenseRef": "any-OSI"}
    family = re.split("[- ]", row)[0]
    return re.search(others.get(family, family), " ".join(stated)) is not None


@pytest.mark.parametrize(
    "manifest",
    ["openclaw/openclaw.plugin.json", "openclaw/package.json", "claude-code/.claude-plugin/plugin.json"],
)
def test_a_plugin_for_a_client_has_the_same_version(manifest):
    stated = json.loads((ROOT / "memctl/agents" / manifest).read_text(encoding="utf-8"))
    assert stated["version"] == __version__


# "memd" and "memctl" alone are words and paths; the names below are those of distributions.
UNOWNED = re.compile(r"\b(?:(?:install|inject|uvx|npx)\b[^\n`]*?['\" ])(memd-[a-z]+[a-z-]*)(?!\S*/)")


def test_no_message_or_page_tells_to_install_a_name_that_is_not_registered():
    """On a public index such a name may be anybody's; to remove what is installed, its name is right."""
    told = []
    for name in _tracked():
        path = ROOT / name
        if name.startswith(
            ("memd/", "memctl/", "models/", "docs/", "README.md", ".github/")
        ) and path.suffix in {".py", ".md", ".json", ".lua"}:
            for line in path.read_text(encoding="utf-8").splitlines():
                told += [(path.name, line) for _ in UNOWNED.findall(line) if "uninstall" not in line]
    assert told == []


@pytest.mark.parametrize("is_published", [False, True])
def test_one_constant_decides_whether_messages_name_the_index(monkeypatch, is_published):
    monkeypatch.setattr(versions, "PUBLISHED", is_published)
    monkeypatch.setattr(versions, "other_distributions", lambda: ["memd-engine 0.5.2"])
    monkeypatch.setattr(model_store, "installed", dict)
    for told in (versions.others_line(), init._multilingual("/notes")):
        assert bool(re.search(r"install '?memd-", told)) is is_published
        assert ("clone" in told) is not is_published
        assert not UNOWNED.search(told) or is_published

"""A model that is installed as a package beside memd is found, chosen and given up by its name."""

import json
import tomllib
from pathlib import Path

import pytest
from daemon_process import Daemon, folder_of, until
from patience import PATIENCE

from memd.embedding.model import FOLDER

SETTINGS = {"name": "tiny-e5", "license": "MIT", "cosine_zero": 0, "cosine_scale": 1, "random_sd": 0.08}


def install(site: Path, name: str = "multilingual") -> None:
    """Install a package with the shipped model's files, as pip would."""
    package = site / "tiny_model"
    folder_of(package, {"__init__.py": "raise RuntimeError('no code of a model runs')\n"})
    for file in ("model.onnx", "tokenizer.json"):
        (package / file).symlink_to(FOLDER / file)
    (package / "memd.json").write_text(json.dumps(SETTINGS))
    facts = site / "tiny_model-1.5.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.5\n")
    (facts / "entry_points.txt").write_text(f"[memd.models]\n{name} = tiny_model\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def daemon(unstarted: Daemon, site: Path) -> Daemon:
    unstarted.environment["PYTHONPATH"] = str(site)
    return unstarted.start()


def workspace(daemon: Daemon, tmp_path: Path) -> Path:
    root = folder_of(tmp_path / "notes", {"a.md": "# Editor\n\nTabs are four spaces wide.\n"})
    daemon.add(root)
    return root


def test_a_package_is_listed_used_and_given_up(daemon: Daemon, site: Path, tmp_path: Path):
    """Both configurations get its name, not a folder that an upgrade would move."""
    root = workspace(daemon, tmp_path)
    install(site)
    listed = daemon.memctl("models", "list").stdout
    assert listed.startswith("multilingual  package tiny-model 1.5  23.5 MB  licence MIT")
    [known] = json.loads(daemon.memctl("models", "list", "--json").stdout)["models"]
    assert (known["name"], known["folder"]) == ("multilingual", str(site / "tiny_model"))

    done = daemon.memctl("models", "use", "multilingual", "-w", str(root))
    assert (done.returncode, done.stderr) == (0, "")
    mine = daemon.home / "config/memd/config.toml"
    assert tomllib.loads(mine.read_text())["models"] == ["multilingual"]
    assert tomllib.loads((root / "memory/config.toml").read_text())["model"] == "multilingual"
    with daemon.client() as client:
        client.call("index", {"workspace": str(root)}, timeout_s=60 * PATIENCE)
    until(lambda: daemon.status()["model_id"].startswith("tiny-e5:"))
    assert daemon.call("search", query="indentation", mode="vector", workspace=str(root))["hits"]

    done = daemon.memctl("models", "remove", "multilingual")
    assert done.returncode == 2
    assert f"is the model of {root}" in done.stderr
    daemon.memctl("models", "use", "all-MiniLM-L6-v2", "-w", str(root))
    assert daemon.memctl("models", "remove", "all-MiniLM-L6-v2").returncode == 2
    done = daemon.memctl("models", "remove", "multilingual")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pip uninstall tiny-model" in done.stdout
    assert tomllib.loads(mine.read_text())["models"] == []
    assert (site / "tiny_model").is_dir()


def test_a_workspace_cannot_choose_what_the_user_did_not(daemon: Daemon, site: Path, tmp_path: Path):
    install(site)
    root = workspace(daemon, tmp_path)
    done = daemon.memctl("workspaces", "configure", "-w", str(root), "model=multilingual")
    assert done.returncode != 0
    assert "model = 'multilingual' is an installed model that" in done.stderr
    assert "model" not in tomllib.loads((root / "memory/config.toml").read_text())


def test_a_package_that_is_gone_is_named(daemon: Daemon, site: Path, tmp_path: Path):
    root = workspace(daemon, tmp_path)
    install(site)
    daemon.memctl("models", "use", "multilingual", "-w", str(root))
    (site / "tiny_model-1.5.dist-info/entry_points.txt").write_text("")
    daemon.stop()
    daemon.start()
    assert daemon.found("tabs", workspace=str(root)) == ["a.md"]
    until(lambda: "model-failed" in daemon.status()["degraded"])
    assert "memctl models list names those that are" in str(daemon.status())


def test_init_offers_the_installed_model(daemon: Daemon, site: Path, tmp_path: Path):
    install(site)
    root = folder_of(tmp_path / "chinese", {"zh.md": "发动机要在星期四修理好，费用是四百元。\n"})
    said = daemon.memctl("init", str(root)).stdout
    assert f"To find them by meaning: memctl models use multilingual -w {root}" in said

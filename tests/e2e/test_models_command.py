"""`memctl models` downloads a model from a hub, sets it in a workspace and takes it away again."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_process import Daemon
from model_hub import REVISION, ModelHub
from patience import PATIENCE

from memd.embedding.model import MODEL_FILE, TOKENIZER_FILE
from memd.embedding.model_folder import read_folder

pytestmark = pytest.mark.usefixtures("shared_daemon")

REPO = "people/small-model"
DOWNLOADED = ("1_Pooling/config.json", "config.json", "onnx/model.onnx", "tokenizer.json")
PREFIXES = ("--query-prefix", "query: ", "--document-prefix", "passage: ")


@pytest.fixture
def hub() -> Iterator[ModelHub]:
    files = {
        "onnx/model.onnx": MODEL_FILE.read_bytes(),
        "tokenizer.json": TOKENIZER_FILE.read_bytes(),
        "config.json": b'{"max_position_embeddings": 512}',
        "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
        "pytorch_model.bin": b"not wanted",
        "../escape/config.json": b"{}",
    }
    hub = ModelHub(REPO, files)
    yield hub
    hub.stop()


@pytest.fixture(autouse=True)
def clean_home(daemon: Daemon) -> Iterator[None]:
    """Leave neither models nor the user's configuration to the next test."""
    yield
    for folder in ("data", "hub", "config"):
        shutil.rmtree(daemon.home / folder, ignore_errors=True)


def environment_of(daemon: Daemon, hub: ModelHub) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hub.address, "HF_HOME": str(daemon.home / "hub"), "HF_TOKEN": "hf_secret",
        "XDG_DATA_HOME": str(daemon.home / "data"),
    }  # fmt: skip


def models(daemon: Daemon, hub: ModelHub, *arguments: str) -> subprocess.CompletedProcess[str]:
    return daemon.memctl("models", *arguments, env=environment_of(daemon, hub), stdin=subprocess.DEVNULL)


def store(daemon: Daemon) -> Path:
    return daemon.home / "data/memd/models"


def test_a_model_is_added_used_and_removed(daemon: Daemon, hub: ModelHub, tmp_path: Path):
    done = models(daemon, hub, "add", REPO, *PREFIXES, "--scripts", "Latin,Greek", "--yes")
    assert done.returncode == 0
    kib = sum(map(len, (hub.files[name] for name in DOWNLOADED))) >> 10
    assert re.fullmatch(rf"(memctl: downloading KiB [\d,]+/{kib:,}.*\n)+", done.stderr)
    folder = store(daemon) / "small-model"
    found = read_folder(folder)
    assert (found.query_prefix, found.document_prefix) == ("query: ", "passage: ")
    assert found.scripts == {"Latin", "Greek"}
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert kept == {*DOWNLOADED, "memd.json"}
    assert {authorization for _, authorization in hub.asked} == {None}
    assert "small-model  people/small-model  23.5 MB" in models(daemon, hub, "list").stdout
    (known,) = json.loads(models(daemon, hub, "list", "--json").stdout)["models"]
    assert known["ms_per_chunk"] > 0
    assert found.cosines is not None
    assert (known["cosine_zero"], known["cosine_scale"]) == (found.cosines.zero, found.cosines.scale)
    assert (known["dim"], known["license"], known["revision"]) == (384, "apache-2.0", "1" * 40)

    config = daemon.home / "config/memd/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    root = tmp_path / "notes"
    daemon.add_notes(root, {"memory/a.md": "# Editor\n\nTabs are four spaces wide.\n"})
    config.write_text("models = [")
    done = models(daemon, hub, "use", "small-model", "-w", str(root))
    assert (done.returncode, f"{config} could not be changed" in done.stderr) == (8, True)
    assert config.read_text() == "models = [", "what is no TOML stays as it is"
    assert (root / "memory/config.toml").read_text() == 'provider = "none"\n'
    config.write_text('# mine\nmodels = ["/other"]  # kept\nallow_remote = false\n')
    config.chmod(0o640)
    done = models(daemon, hub, "use", "small-model", "-w", str(root))
    assert (done.returncode, done.stderr) == (0, "")
    text = config.read_text()
    assert text.startswith("# mine\n")
    assert "# kept" in text
    assert tomllib.loads(text) == {"models": ["/other", str(folder)], "allow_remote": False}
    assert config.stat().st_mode & 0o777 == 0o640
    with daemon.client() as client:
        client.call("index", {"workspace": str(root)}, timeout_s=60 * PATIENCE)
    assert daemon.call("search", query="indentation", mode="vector", workspace=str(root))["hits"]
    (workspace,) = daemon.call("status")["workspaces"]
    assert workspace["model_id"].startswith("small-model:")

    done = models(daemon, hub, "remove", "small-model")
    assert done.returncode == 2
    assert f"is the model of {root}" in done.stderr
    assert folder.is_dir()
    daemon.memctl("workspaces", "configure", "-w", str(root), "model=all-MiniLM-L6-v2")
    (folder / "mine.txt").write_text("not downloaded")
    done = models(daemon, hub, "remove", "small-model")
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in folder.rglob("*")] == ["mine.txt"]
    assert tomllib.loads(config.read_text())["models"] == ["/other"]
    assert ((none := models(daemon, hub, "list")).returncode, "only the shipped" in none.stderr) == (1, True)


def test_nothing_is_downloaded_before_somebody_agrees(daemon: Daemon, hub: ModelHub):
    done = models(daemon, hub, "add", REPO)
    assert done.returncode == 2
    assert "download people/small-model: 23.5 MB, licence apache-2.0: pass --yes" in done.stderr
    assert not [path for path, _ in hub.asked if "/resolve/" in path]
    assert list(store(daemon).iterdir()) == []


@pytest.mark.parametrize("name", ["onnx/model.onnx", "config.json"])
def test_a_file_that_is_not_what_was_listed_is_not_kept(daemon: Daemon, hub: ModelHub, name: str):
    """Of the same size and with another byte: by SHA-256, or by git's checksum for small files."""
    hub.sent[name] = hub.files[name][:-1] + b"?"
    done = models(daemon, hub, "add", REPO, "--yes")
    assert done.returncode == 74
    assert "is not what the hub listed" in done.stderr
    assert list(store(daemon).iterdir()) == []


@pytest.mark.parametrize(
    ("change", "arguments", "words"),
    [
        ({"onnx/model.onnx": None}, [REPO], "has no ONNX graph"),
        ({"tokenizer.json": None}, [REPO], "has no tokenizer.json"),
        ({"tokenizer.json": b"{}"}, [REPO], "memd cannot use this model, nothing was kept: "),
        ({}, [REPO, "--scripts", "Klingon"], "'Klingon'"),
        ({}, ["people/absent"], "could not be downloaded"),
        ({}, ["people/.."], "is not the name of a model"),
        ({}, ["small-model"], "is not OWNER/NAME"),
    ],
)
def test_what_memd_cannot_use_is_not_kept(daemon: Daemon, hub: ModelHub, change, arguments, words: str):
    for name, content in change.items():
        hub.files[name] = hub.sent[name] = content
        if content is None:
            del hub.files[name]
    done = models(daemon, hub, "add", *arguments, "--yes")
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not store(daemon).exists() or list(store(daemon).iterdir()) == []


def test_a_hub_that_is_not_there_is_one_line(daemon: Daemon, hub: ModelHub):
    hub.address = "http://127.0.0.1:1"
    done = models(daemon, hub, "add", REPO, "--yes")
    assert done.returncode != 0
    assert "could not be downloaded" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["onnx/model.onnx", "config.json"])
def test_a_body_without_an_end_is_given_up_at_the_size_that_was_agreed_to(
    daemon: Daemon, hub: ModelHub, name: str
):
    hub.endless.add(f"/{REPO}/resolve/{REVISION}/{name}")
    done = models(daemon, hub, "add", REPO, "--yes")
    assert done.returncode == 74
    assert f"{name.rpartition('/')[2]} is larger than the hub listed: more than" in done.stderr
    assert not [line for line in done.stderr.splitlines() if not line.startswith("memctl: ")]
    assert list(store(daemon).iterdir()) == []


@pytest.mark.parametrize(
    "listing",
    [
        b"<html>not json", b"[]", b"3", b"null", b"{}", b"[" * 100_000, b"\xff", b'{"id": "x"}',
        b'{"id": "x", "siblings": 5}', b'{"id": "x", "siblings": [{}]}',
        b'{"id": "x", "siblings": [{"rfilename": "model.onnx"}, {"rfilename": "tokenizer.json"}]}',
    ],
)  # fmt: skip
def test_an_answer_that_is_none_of_a_hub_is_one_line(daemon: Daemon, hub: ModelHub, listing: bytes):
    """No JSON, or JSON of another shape; HF_ENDPOINT may name any server."""
    hub.listing = listing
    done = models(daemon, hub, "add", REPO, "--yes")
    assert done.returncode not in {0, 70}
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not store(daemon).exists() or list(store(daemon).iterdir()) == []


def test_a_list_of_files_without_an_end_is_given_up(daemon: Daemon, hub: ModelHub):
    hub.endless.add(f"/api/models/{REPO}")
    done = models(daemon, hub, "add", REPO, "--yes")
    assert f"the list of files of {REPO} is larger than the hub listed: more than" in done.stderr


def test_who_sits_at_a_terminal_is_asked_and_what_a_killed_run_left_goes(daemon: Daemon, hub: ModelHub):
    dead, alive = (store(daemon) / f".adding-{name}" for name in ("dead", "alive"))
    for left in (dead, alive):
        (left / "small-model").mkdir(parents=True)
        (left / "small-model" / "model.onnx").write_bytes(b"half")
    opened = os.open(alive, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    for answer, code in (("n\n", 1), ("y\n", 0)):
        added = daemon.at_a_terminal(answer, "models", "add", REPO, env=environment_of(daemon, hub))
        assert added[0] == code
        assert "This will download people/small-model: 23.5 MB, licence apache-2.0. Go on? [y/N]" in added[2]
        assert (store(daemon) / "small-model").is_dir() == (not code)
    os.close(opened)
    assert {path.name for path in store(daemon).iterdir()} == {"small-model", ".adding-alive"}

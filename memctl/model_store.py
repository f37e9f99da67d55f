"""The models beside the shipped one: downloaded folders and installed packages, and the user's permission.

A downloaded model is a folder below the user's data folder. Its memd.json has the origin of each file, and
settings for memd: prefixes and scripts. An installed model is a package with an entry point of the group
"memd.models"; no code of it runs.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from memctl import exits, paths
from memctl.exits import CommandError

RECORD = "memd.json"
GROUP = "memd.models"
SHIPPED = "all-MiniLM-L6-v2"  # the model that comes with memd, outside of the user's data folder
MULTILINGUAL = "multilingual"  # the model that can be built and installed from a clone (models/)
MULTILINGUAL_DISTRIBUTION = "memd-model-multilingual"
_STAGED = ".adding-"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# In order of preference, as in memd.
_GRAPHS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
_TOKENIZERS = ("tokenizer.json", "onnx/tokenizer.json")
_SETTINGS = {
    "modules.json", "config.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    "tokenizer_config.json", "LICENSE", "LICENSE.txt", "NOTICE",
}  # fmt: skip
_POOLING = re.compile(r"[A-Za-z0-9_]+/config\.json")


def folder_of(name: str) -> Path:
    """Return the folder of the model *name*, which may not exist. Raises CommandError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise CommandError(f"{name!r} is not the name of a model. Known ones: memctl models list")
    return paths.data_dir() / "models" / name


def records() -> dict[str, dict[str, Any]]:
    """Return name → record for each downloaded model."""
    found = {}
    for path in sorted((paths.data_dir() / "models").glob(f"*/{RECORD}")):
        with suppress(OSError, ValueError):
            found[path.parent.name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def record_of(name: str) -> dict[str, Any]:
    """Return the record of one model. Raises CommandError if no such model was downloaded."""
    folder_of(name)
    known = records()
    if name not in known:
        names = ", ".join([*known, *installed()]) or "none"
        raise CommandError(f"no model {name!r} was added; there are: {names}", exits.NOT_FOUND)
    return known[name]


def installed() -> dict[str, dict[str, Any]]:
    """Return name → record for each model that is installed as a package; see `memd.embedding.provider`."""
    from importlib.metadata import entry_points  # takes 20 ms
    from importlib.util import find_spec

    found = {}
    for point in entry_points(group=GROUP):
        spec = find_spec(point.module) if point.module.isidentifier() else None
        if spec is None or not spec.submodule_search_locations or not _NAME.fullmatch(point.name):
            continue
        folder = Path(spec.submodule_search_locations[0])
        files = [path for path in folder.glob("*") if path.is_file()]
        settings: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            settings = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        found[point.name] = {
            "package": point.dist.name if point.dist else point.module,
            "version": point.dist.version if point.dist else "",
            "folder": str(folder),
            "size_bytes": sum(path.stat().st_size for path in files),
            "license": str(settings.get("license", "not stated")),
        }
    return found


def setting_of(name: str) -> str:
    """Return a model as the settings name it: its folder, or an installed one's name. Raises CommandError."""
    if name == SHIPPED or (name not in records() and name in installed()):
        return name
    record_of(name)
    return str(folder_of(name))


def wanted(names: set[str], repo: str) -> list[str]:
    """Return the files of a repository to download. Raises CommandError if it has no ONNX export."""
    graph = next((name for name in _GRAPHS if name in names), None)
    tokenizer = next((name for name in _TOKENIZERS if name in names), None)
    if graph is None or tokenizer is None:
        missing = f"ONNX graph ({', '.join(_GRAPHS)})" if graph is None else "tokenizer.json"
        raise CommandError(f"{repo} has no {missing}: choose a repository with an ONNX export")
    beside = {name for name in names if name in _SETTINGS or _POOLING.fullmatch(name)}
    return sorted({graph, tokenizer} | beside | ({f"{graph}_data"} & names))


@contextmanager
def staging() -> Iterator[Path]:
    """Yield a temporary folder for a download, after deleting those left behind by killed processes."""
    above = paths.data_dir() / "models"
    with ExitStack() as held:
        with _locked(above):
            for left in above.glob(f"{_STAGED}*"):
                with suppress(BlockingIOError, NotADirectoryError), _locked(left, fcntl.LOCK_NB):
                    shutil.rmtree(left, ignore_errors=True)
            made = Path(tempfile.mkdtemp(dir=above, prefix=_STAGED))
            held.enter_context(_locked(made))
        held.callback(shutil.rmtree, made, ignore_errors=True)
        yield made


@contextmanager
def _locked(folder: Path, flags: int = 0) -> Iterator[None]:
    """Hold the lock of a folder; the end of the process releases it, too."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | flags)
        yield
    finally:
        os.close(opened)


def check_file(path: Path, size_bytes: int, sha256: str | None, blob: str | None) -> str:
    """Return the SHA-256 of a file. Raises CommandError if size or checksum differ from the hub's."""
    found_bytes = path.stat().st_size
    with path.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
        opened.seek(0)
        git = hashlib.sha1(b"blob %d\0" % found_bytes, usedforsecurity=False)
        while part := opened.read(1024 * 1024):
            git.update(part)
    is_same = found == sha256 if sha256 else git.hexdigest() == blob
    if found_bytes != size_bytes or not is_same:
        raise CommandError(
            f"{path.name} is not what the hub listed ({found_bytes} of {size_bytes} bytes, or another "
            "checksum). Nothing was kept; try again",
            exits.STORAGE,
        )
    return found


def delete(folder: Path, record: dict[str, Any]) -> list[str]:
    """Delete the downloaded files, and folders that are empty then; return the paths of other files."""
    for name in [*record["files"], RECORD]:
        path = folder / name
        if path.parent.resolve().is_relative_to(folder.resolve()):
            path.unlink(missing_ok=True)
    for below in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        with suppress(OSError):
            below.rmdir()
    with suppress(OSError):
        folder.rmdir()
    return sorted(str(path) for path in folder.rglob("*")) if folder.exists() else []


def allow(model: str, *, allowed: bool) -> None:
    """Add a model to `models` in the user's configuration, or remove it; the rest does not change.

    Raises:
        CommandError: the file is not TOML, or cannot be written; it was not changed.
    """
    import tomlkit  # takes 30 ms, and only needed to write
    from tomlkit.exceptions import TOMLKitError

    from memctl import config_file

    target = (paths.config_dir() / "config.toml").resolve()
    try:
        text = target.read_text(encoding="utf-8-sig") if target.exists() else ""
        document = tomlkit.parse(text)
        listed = document.get("models", [])
        if (model in listed) == allowed:
            return
        if allowed:
            listed.append(model)
        else:
            listed.remove(model)
        document["models"] = listed
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        config_file.replace(target, tomlkit.dumps(document).encode(), like=target)
    except (OSError, ValueError, AttributeError, TOMLKitError) as error:
        raise CommandError(f"{target} could not be changed: {error}", exits.CONFIG) from error

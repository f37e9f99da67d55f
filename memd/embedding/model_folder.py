"""The configuration files in a model folder: pooling, length, prompts, scripts.

Reads the files that sentence-transformers writes next to an ONNX export. Starts no session and needs no
numpy. Ignores normalization settings: a stored vector always has length 1.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from memd import fsio
from memd.embedding import MODEL_FAILED, UnavailableError
from memd.embedding.model import FOLDER, MAX_SEQUENCE, MODEL_FILE, SCRIPTS, TOKENIZER_FILE
from memd.records import SHIPPED_COSINES, CosineScale
from memd.text import Script

# The options of `memctl models add`: query_prefix, document_prefix, scripts; and what it measures:
# cosine_zero, cosine_scale, random_sd. A package's model also has its name.
OWN_FILE = "memd.json"
# Where exporters put the graph, the preferred one first.
MODEL_FILES = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
TOKENIZER_FILES = ("tokenizer.json", "onnx/tokenizer.json", "memd.sentencepiece")
# Appended to the name of the graph's file: that of its weights, by the convention and by PyTorch's exporter.
WEIGHTS_ENDINGS = ("_data", ".data")
# tokenizer_config.json has 10**30 for "no limit".
SANE_SEQUENCE = 100_000
DEFAULT_SEQUENCE = 512  # the length of BERT and its relatives

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """One model on disk and its settings."""

    name: str
    model_file: Path
    tokenizer_file: Path
    pooling: Pooling
    max_sequence: int  # word pieces, special tokens included
    query_prefix: str
    document_prefix: str
    lower_case: bool
    scripts: frozenset[str] | None
    beyond: tuple[str, ...]  # modules after pooling, which memd can use only as part of the graph
    cosines: CosineScale | None = None  # None: not measured

    @property
    def weights(self) -> tuple[Path, ...]:
        """The files beside the graph that have its weights, as graphs above 2 GB need."""
        name = self.model_file.name
        files = (self.model_file.with_name(f"{name}{ending}") for ending in WEIGHTS_ENDINGS)
        return tuple(path for path in files if path.is_file())

    def fingerprint(self) -> str:
        """Return a name that changes whenever the vectors would change."""
        digest = hashlib.sha256(
            repr(
                (self.pooling, self.max_sequence, self.query_prefix, self.document_prefix, self.lower_case)
            ).encode()
        )
        for path in (self.tokenizer_file, self.model_file, *self.weights):
            with path.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        return f"{self.name}:{digest.hexdigest()[:16]}"


SHIPPED = ModelFolder(
    name="all-MiniLM-L6-v2",
    model_file=MODEL_FILE,
    tokenizer_file=TOKENIZER_FILE,
    pooling="mean",
    max_sequence=MAX_SEQUENCE,
    query_prefix="",
    document_prefix="",
    lower_case=False,
    scripts=SCRIPTS,
    beyond=(),
    cosines=SHIPPED_COSINES,
)


def read_folder(folder: Path) -> ModelFolder:
    """Return the settings of the model in *folder*.

    Raises:
        UnavailableError: *folder* has no graph or tokenizer, or requires something that memd cannot do.
    """
    if folder == FOLDER:
        return SHIPPED
    modules = _json(folder / "modules.json", [])
    pooling, beyond = _pooling(folder, modules)
    settings = _json(folder / "sentence_bert_config.json", {})
    config = _json(folder / "config_sentence_transformers.json", {})
    prompts = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name"), "")
    query = prompts.get("query", default)
    document = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), default)
    query_prefix, document_prefix = query or "", document or ""
    own = _json(folder / OWN_FILE, {})
    return ModelFolder(
        name=str(own.get("name", folder.resolve().name)),
        model_file=_first(folder, MODEL_FILES, "an ONNX graph"),
        tokenizer_file=_first(folder, TOKENIZER_FILES, "a fast tokenizer"),
        pooling=pooling,
        max_sequence=_max_sequence(folder, settings),
        query_prefix=str(own.get("query_prefix", query_prefix)),
        document_prefix=str(own.get("document_prefix", document_prefix)),
        lower_case=settings.get("do_lower_case") is True,
        scripts=_scripts(folder, own.get("scripts")),
        beyond=beyond,
        cosines=_cosines(folder, own),
    )


def _cosines(folder: Path, own: dict[str, Any]) -> CosineScale | None:
    named = {key: own[key] for key in ("cosine_zero", "cosine_scale", "random_sd") if key in own}
    if not named:
        return None
    values = [float(one) for one in named.values() if type(one) in (int, float) and math.isfinite(one)]
    if len(values) != 3 or not (-1 <= values[0] < 1 and values[1] > 0 and values[2] > 0):  # noqa: PLR2004
        raise UnavailableError(
            MODEL_FAILED,
            f"{folder / OWN_FILE}: {named!r}: expected three numbers: cosine_zero in [-1, 1), cosine_scale "
            "and random_sd above 0. Without them, memd measures the model itself.",
        )
    return CosineScale(*values)


def _scripts(folder: Path, named: Any) -> frozenset[str] | None:
    if named is None:
        return None
    unknown = [name for name in named if name not in get_args(Script)] if isinstance(named, list) else named
    if unknown or not named:
        raise UnavailableError(
            MODEL_FAILED,
            f"{folder / OWN_FILE}: scripts = {named!r}: expected some of {', '.join(get_args(Script))}.",
        )
    return frozenset(named)


def _first(folder: Path, names: tuple[str, ...], what: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise UnavailableError(
        MODEL_FAILED,
        f"{folder} holds no {names[0]} ({what}); looked for {', '.join(names)}. Name the folder of a "
        "sentence-transformers export with backend='onnx'.",
    )


def _pooling(folder: Path, modules: Any) -> tuple[Pooling, tuple[str, ...]]:
    """Return how tokens become one vector; without modules.json it is the mean, as in any encoder."""
    mode: Any = "mean"
    beyond = []
    for module in modules:
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            mode = _mode(_json(folder / str(module.get("path", "")) / "config.json", {}))
        elif kind not in ("Transformer", "Normalize"):
            beyond.append(kind)
    if mode not in ("mean", "cls"):
        raise UnavailableError(
            MODEL_FAILED, f"{folder} pools by {mode!r}; memd can pool by 'mean' and 'cls'. Use another model."
        )
    return cast("Pooling", mode), tuple(beyond)


def _mode(config: dict[str, Any]) -> Any:
    """Return the pooling mode from either spelling: a name, or one flag per mode; unclear flags as a text."""
    if config.get("include_prompt") is False:
        return "mean without the prompt"
    if "pooling_mode" in config:
        return config["pooling_mode"]
    flags = sorted(key for key, value in config.items() if key.startswith("pooling_mode_") and value is True)
    names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    return names.get(flags[0], flags[0]) if len(flags) == 1 else flags or "mean"


def _max_sequence(folder: Path, settings: dict[str, Any]) -> int:
    for value in (
        settings.get("max_seq_length"),
        _json(folder / "tokenizer_config.json", {}).get("model_max_length"),
        _json(folder / "config.json", {}).get("max_position_embeddings"),
    ):
        if isinstance(value, int) and 0 < value < SANE_SEQUENCE:
            return value
    return DEFAULT_SEQUENCE


def _json(path: Path, default: Any) -> Any:
    """Return the content of *path*, of the same type as *default*, or *default* if there is no file."""
    try:
        content = json.loads(fsio.read_regular(path))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise UnavailableError(
            MODEL_FAILED, f"{path} cannot be read: {error}. Export the model again."
        ) from error
    if not isinstance(content, type(default)):
        raise UnavailableError(
            MODEL_FAILED, f"{path} holds a {type(content).__name__}, expected a {type(default).__name__}."
        )
    return content

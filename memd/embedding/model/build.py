"""How was the shipped model made?

    python -m memd.embedding.model.build WEIGHTS_DIR            writes model.onnx and tokenizer.json
    python -m memd.embedding.model.build WEIGHTS_DIR --check    builds twice, compares, writes nothing

WEIGHTS_DIR is the folder of sentence-transformers/all-MiniLM-L6-v2 as published: model.safetensors
and tokenizer.json. Needs the extra `model` (onnx, safetensors), no torch, no network. The bytes depend
on the versions of onnx and onnxruntime: onnx 1.23.2 and onnxruntime 1.31.1 made the shipped file.
"""

import argparse
import base64
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import safetensors.numpy
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic

from memd.embedding.model import FOLDER, MAX_SEQUENCE, MODEL_FILE, REFERENCE_FILE, TOKENIZER_FILE, graph
from memd.embedding.tokenizer import WordPieces

# The published weights, and no others: all that follows is checked against this model's vectors.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Before rounding only the order of additions differs (4e-7 measured): less is a wiring fault.
MIN_COSINE_FLOAT32 = 0.9999
# After rounding, the mean over the recorded texts is .9966, the least .989.
MIN_COSINE_INT8 = 0.98

Array = NDArray[np.float32]


class BuildError(Exception):
    """The build stops and writes nothing."""


def build(weights_dir: Path) -> tuple[bytes, bytes]:
    """Return the model and its tokenizer as the bytes of their files.

    Raises:
        BuildError: other weights than the published ones, or vectors that stray from the recorded ones.
    """
    weights_file = weights_dir / "model.safetensors"
    found = hashlib.sha256(weights_file.read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        raise BuildError(f"{weights_file} has SHA-256 {found}, the published weights {WEIGHTS_SHA256}.")
    tokenizer = _tokenizer(weights_dir / "tokenizer.json")
    texts, recorded = reference()
    inputs = _inputs(texts, tokenizer)
    full = graph.network(safetensors.numpy.load_file(weights_file))
    _demand("float32", _run(full, inputs), recorded, MIN_COSINE_FLOAT32)
    smooth = graph.smooth(full, _reach(full, inputs))
    _demand("float32, smoothed", _run(smooth, inputs), recorded, MIN_COSINE_FLOAT32)
    small = _quantise(smooth)
    _demand("int8", _run(small, inputs), recorded, MIN_COSINE_INT8)
    return graph.canonical(small), tokenizer


def reference() -> tuple[list[str], Array]:
    """Return the recorded texts and what sentence-transformers made of them, rows of length 1."""
    rows = json.loads(REFERENCE_FILE.read_text(encoding="utf-8"))["rows"]
    vectors = np.stack([np.frombuffer(base64.b64decode(row["vector"]), "<f2") for row in rows])
    wide = vectors.astype(np.float32)
    unit: Array = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return [row["text"] for row in rows], unit


def _tokenizer(path: Path) -> bytes:
    """Return the published tokenizer without its truncation at 128 and its padding to 128."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content.update(truncation=None, padding=None)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _inputs(texts: list[str], tokenizer: bytes) -> list[dict[str, NDArray[np.int64]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        path.write_bytes(tokenizer)
        pieces = WordPieces(path)
    ids = [np.array([pieces.ids(text, MAX_SEQUENCE - pieces.special_tokens)], np.int64) for text in texts]
    return [{"input_ids": row, "attention_mask": np.ones_like(row)} for row in ids]


def _session(model: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # sums in one order, so that two builds see the same numbers
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _run(model: onnx.ModelProto, inputs: list[dict[str, NDArray[np.int64]]]) -> Array:
    session = _session(model)
    return np.concatenate([session.run(["embedding"], each)[0] for each in inputs])


def _reach(model: onnx.ModelProto, inputs: list[dict[str, NDArray[np.int64]]]) -> dict[str, Array]:
    """Return, for what enters each product, the largest magnitude of each channel over all texts."""
    watched, names = graph.with_activations(model)
    session = _session(watched)
    reach = {name: np.zeros(1, np.float32) for name in names}
    for each in inputs:
        for name, activation in zip(names, session.run(names, each), strict=True):
            reach[name] = np.maximum(reach[name], np.abs(activation).max(axis=(0, 1)))
    return reach


def _quantise(model: onnx.ModelProto) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul", "Attention", "Gather"],
            per_channel=True,
            weight_type=QuantType.QInt8,
            # The types behind onnxruntime's own operators cannot be inferred by onnx.
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return onnx.load(path)


def _demand(stage: str, vectors: Array, recorded: Array, least: float) -> None:
    cosines = (vectors * recorded).sum(axis=1)
    print(f"{stage}: cosine to the recorded vectors: mean {cosines.mean():.6f}, min {cosines.min():.6f}")
    if not cosines.min() >= least:  # written so that NaN fails, too
        raise BuildError(
            f"{stage}: text {int(cosines.argmin())} reaches {cosines.min():.6f}, needed is {least}."
        )


def main() -> int:
    """Build, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("weights_dir", type=Path, metavar="WEIGHTS_DIR")
    parser.add_argument("--check", action="store_true", help="build twice, compare, write nothing")
    arguments = parser.parse_args()
    try:
        built = build(arguments.weights_dir)
        again = build(arguments.weights_dir) if arguments.check else built
    except (BuildError, OSError) as error:
        print(f"Nothing was written. {error}", file=sys.stderr)
        return 1
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, numpy {np.__version__}")
    same = True
    for path, content, second in zip((MODEL_FILE, TOKENIZER_FILE), built, again, strict=True):
        print(f"{path.name}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")
        if arguments.check:
            repeated, shipped = content == second, content == path.read_bytes()
            print(f"  second build is the same: {repeated}; so is the shipped file: {shipped}")
            same = same and repeated and shipped
        else:
            path.write_bytes(content)
    if not arguments.check:
        print(f"Written to {FOLDER}. Put both sums into memd/embedding/model/__init__.py.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

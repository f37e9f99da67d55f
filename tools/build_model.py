"""Builds the shipped model: converts the published weights to ONNX and quantizes them to eight bits.

    python tools/build_model.py WEIGHTS_DIR            writes model.onnx and tokenizer.json
    python tools/build_model.py WEIGHTS_DIR --check    builds twice, compares, writes nothing

WEIGHTS_DIR is the folder of sentence-transformers/all-MiniLM-L6-v2 as published: model.safetensors
and tokenizer.json. Needs the extra `model` (onnx, safetensors), no torch, no network. The bytes depend
on the versions of onnx and onnxruntime: onnx 1.23.2 and onnxruntime 1.31.1 made the shipped file.

Needs ``onnx``, as only this build does.
"""

import argparse
import base64
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import safetensors.numpy
from numpy.typing import NDArray
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from memd.embedding.cosines import measured
from memd.embedding.model import FOLDER, MAX_SEQUENCE, MODEL_FILE, REFERENCE_FILE, TOKENIZER_FILE
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.tokenizer import WordPieces

LAYERS = 6
HEADS = 12
DIM = 384
CONTRIB = "com.microsoft"  # onnxruntime's own operators: fused attention, fused bias and GELU
EPSILON = 1e-12  # layer_norm_eps of the published config.json

# How much of an activation channel's range is moved into the weights before both are rounded, in [0, 1]. The
# best of 0.7, 0.8, 0.9 and 1.0 on 290 texts that the build does not use: mean cosine to float32 .9968
# (without: .9940), worst .986 (.980). Values up to 0.5 are worse than none.
SMOOTHING = 0.7
# Scales are powers of two within 2**-8 … 2**8: they change no float32 result, and small differences in
# another machine's activations hardly ever change the file.
MAX_EXPONENT = 8

Array = NDArray[np.float32]
Weights = Mapping[str, Array]


class Graph:
    """The nodes and constants of a graph under construction."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        """Add a constant; return its name."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self, operator: str, inputs: list[str], output: str, *, domain: str = "", **attributes: Any
    ) -> str:
        """Add a node; return its output."""
        self.nodes.append(
            helper.make_node(operator, inputs, [output], name=output, domain=domain, **attributes)
        )
        return output


def network(
    weights: Weights,
    *,
    name: str = "all-MiniLM-L6-v2",
    layers: int = LAYERS,
    max_sequence: int = MAX_SEQUENCE,
    words: Callable[[Graph], str] | None = None,
) -> ModelProto:
    """Return the float32 graph: input_ids and attention_mask → rows of length 1.

    Args:
        weights: by their names in BERT.
        name: of the model.
        layers: of its encoder.
        max_sequence: the positions that are kept.
        words: adds the node that reads the word table; None: the table is in *weights*.
    """
    graph = Graph()
    looked_up = words(graph) if words else _words(graph, weights)
    hidden = _embeddings(graph, weights, looked_up, max_sequence)
    graph.node("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    for layer in range(layers):
        hidden = _layer(graph, weights, layer, hidden)
    _pool(graph, hidden)
    return _model(graph, name)


def _words(graph: Graph, weights: Weights) -> str:
    table = graph.constant("words.table", weights["embeddings.word_embeddings.weight"])
    return graph.node("Gather", [table, "input_ids"], "words")


def _embeddings(graph: Graph, weights: Weights, words: str, max_sequence: int) -> str:
    positions = weights["embeddings.position_embeddings.weight"][:max_sequence]
    segment = weights["embeddings.token_type_embeddings.weight"][0]  # texts come one at a time
    table = graph.constant("positions.table", positions + segment)
    zero = graph.constant("zero", np.zeros(1, np.int64))
    graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    graph.node("Slice", [table, zero, "length", zero], "positions")
    graph.node("Add", [words, "positions"], "embedded")
    return _normalise(graph, weights, "embeddings.LayerNorm", "embedded", "hidden")


def _layer(graph: Graph, weights: Weights, layer: int, hidden: str) -> str:
    source, name = f"encoder.layer.{layer}", f"layer{layer}"
    parts = [f"{source}.attention.self.{part}" for part in ("query", "key", "value")]
    packed = graph.constant(
        f"{name}.attention.weight", np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    )
    bias = graph.constant(
        f"{name}.attention.bias", np.concatenate([weights[f"{part}.bias"] for part in parts])
    )
    attended = graph.node(
        "Attention", [hidden, packed, bias, "mask"], f"{name}.attention", domain=CONTRIB, num_heads=HEADS
    )
    hidden = _project(
        graph,
        weights,
        source=f"{source}.attention.output",
        inner=attended,
        residual=hidden,
        name=f"{name}.attended",
    )
    wide = graph.constant(f"{name}.wide.weight", weights[f"{source}.intermediate.dense.weight"].T)
    wide_bias = graph.constant(f"{name}.wide.bias", weights[f"{source}.intermediate.dense.bias"])
    graph.node("MatMul", [hidden, wide], f"{name}.wide")
    active = graph.node("BiasGelu", [f"{name}.wide", wide_bias], f"{name}.active", domain=CONTRIB)
    return _project(
        graph, weights, source=f"{source}.output", inner=active, residual=hidden, name=f"{name}.output"
    )


def _project(graph: Graph, weights: Weights, *, source: str, inner: str, residual: str, name: str) -> str:
    """Project back to 384 channels, add the residual, and normalize."""
    weight = graph.constant(f"{name}.weight", weights[f"{source}.dense.weight"].T)
    bias = graph.constant(f"{name}.bias", weights[f"{source}.dense.bias"])
    graph.node("MatMul", [inner, weight], f"{name}.product")
    graph.node("Add", [f"{name}.product", bias], f"{name}.biased")
    graph.node("Add", [f"{name}.biased", residual], f"{name}.sum")
    return _normalise(graph, weights, f"{source}.LayerNorm", f"{name}.sum", name)


def _normalise(graph: Graph, weights: Weights, source: str, inner: str, name: str) -> str:
    gain = graph.constant(f"{name}.gain", weights[f"{source}.weight"])
    shift = graph.constant(f"{name}.shift", weights[f"{source}.bias"])
    return graph.node("LayerNormalization", [inner, gain, shift], name, axis=-1, epsilon=EPSILON)


def _pool(graph: Graph, hidden: str) -> None:
    """Sum over the tokens that are not padding. Scaled to length 1, the sum equals the mean."""
    last_axis = graph.constant("last_axis", np.array([2], np.int64))
    token_axis = graph.constant("token_axis", np.array([1], np.int64))
    graph.node("Cast", ["attention_mask"], "present", to=TensorProto.FLOAT)
    graph.node("Unsqueeze", ["present", last_axis], "present.column")
    graph.node("Mul", [hidden, "present.column"], "kept")
    graph.node("ReduceSum", ["kept", token_axis], "total", keepdims=0)
    graph.node("LpNormalization", ["total"], "embedding", axis=1, p=2)


def _model(graph: Graph, name: str) -> ModelProto:
    def tensor(name: str, kind: int, *shape: str | int) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [tensor(name, TensorProto.INT64, "batch", "length") for name in ("input_ids", "attention_mask")]
    outputs = [tensor("embedding", TensorProto.FLOAT, "batch", DIM)]
    body = helper.make_graph(graph.nodes, name, inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(CONTRIB, 1)]
    model: ModelProto = helper.make_model(body, opset_imports=opsets, ir_version=9)
    return model


def with_activations(model: ModelProto) -> tuple[ModelProto, list[str]]:
    """Return a copy that also outputs the inputs of each smoothed product, and the names of these outputs."""
    copy: ModelProto = ModelProto.FromString(model.SerializeToString())
    names = sorted({node.input[0] for node in _smoothed_products(model)})
    copy.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    return copy, names


def smooth(model: ModelProto, reach: Mapping[str, Array]) -> ModelProto:
    """Return the same function with its outlier channels moved from the activations into the weights.

    Dynamic quantization has one scale for a whole activation, and a few channels of MiniLM have a much larger
    range than the others, which then get only a handful of steps. Each channel is divided by a power of two,
    by which the weights' rows are multiplied (SmoothQuant, Xiao et al., ICML 2023).

    Args:
        model: from `network`; not modified.
        reach: for each name of `with_activations`, the largest magnitude seen in each channel.
    """
    copy: ModelProto = ModelProto.FromString(model.SerializeToString())
    constants = {constant.name: constant for constant in copy.graph.initializer}
    products = {node.name for node in _smoothed_products(copy)}
    nodes: list[NodeProto] = []
    for node in copy.graph.node:
        if node.name in products:
            weight = numpy_helper.to_array(constants[node.input[1]])
            scale = _scale(reach[node.input[0]], weight)
            constants[node.input[1]].CopyFrom(numpy_helper.from_array(weight * scale[:, None], node.input[1]))
            inverse = numpy_helper.from_array(1 / scale, f"{node.name}.inverse")
            copy.graph.initializer.append(inverse)
            output = f"{node.name}.smooth"
            nodes.append(helper.make_node("Mul", [node.input[0], inverse.name], [output], name=output))
            node.input[0] = output
        nodes.append(NodeProto.FromString(node.SerializeToString()))
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _smoothed_products(model: ModelProto) -> Iterator[NodeProto]:
    # The output of attention has no outliers: smoothing its projection has no effect.
    for node in model.graph.node:
        if node.op_type in ("MatMul", "Attention") and not node.name.endswith(".attended.product"):
            yield node


def _scale(reach: Array, weight: Array) -> Array:
    wanted = reach**SMOOTHING / np.abs(weight).max(axis=1) ** (1 - SMOOTHING)
    floor = np.finfo(np.float32).tiny  # for a channel that is never active
    exponents = np.round(np.log2(np.maximum(wanted, floor) / np.median(wanted)))
    scale: Array = np.exp2(np.clip(exponents, -MAX_EXPONENT, MAX_EXPONENT)).astype(np.float32)
    return scale


def canonical(model: ModelProto) -> bytes:
    """Return the bytes of *model* without the names and versions of the tools that built it."""
    copy: ModelProto = ModelProto.FromString(model.SerializeToString())
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        copy.ClearField(field)
    del copy.metadata_props[:]
    del copy.graph.value_info[:]
    for node in copy.graph.node:
        attributes: list[AttributeProto] = sorted(node.attribute, key=lambda attribute: attribute.name)
        del node.attribute[:]
        node.attribute.extend(attributes)
    written: bytes = copy.SerializeToString(deterministic=True)
    return written


# The published weights, and no others: everything else is checked against this model's vectors.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Before rounding, only the order of additions differs (4e-7 measured): a lower cosine is a wiring error.
MIN_COSINE_FLOAT32 = 0.9999
# After rounding, the mean over the recorded texts is .9966, the minimum .989.
MIN_COSINE_INT8 = 0.98


class BuildError(Exception):
    """The build stops and writes nothing."""


def build(weights_dir: Path) -> tuple[bytes, bytes]:
    """Return the model and its tokenizer as the bytes of their files.

    Raises:
        BuildError: the weights are not the published ones, or the vectors differ from the recorded ones.
    """
    weights_file = weights_dir / "model.safetensors"
    found = hashlib.sha256(weights_file.read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        raise BuildError(f"{weights_file} has SHA-256 {found}, the published weights {WEIGHTS_SHA256}.")
    tokenizer = _tokenizer(weights_dir / "tokenizer.json")
    texts, recorded = reference()
    inputs = _inputs(texts, tokenizer)
    full = network(safetensors.numpy.load_file(weights_file))
    demand("float32", run(full, inputs), recorded, MIN_COSINE_FLOAT32)
    smoothed = smooth(full, reach(full, inputs))
    demand("float32, smoothed", run(smoothed, inputs), recorded, MIN_COSINE_FLOAT32)
    small = quantise(smoothed)
    demand("int8", run(small, inputs), recorded, MIN_COSINE_INT8)
    return canonical(small), tokenizer


def reference(recorded: Path = REFERENCE_FILE) -> tuple[list[str], Array]:
    """Return the recorded texts and their vectors from the model's own program, rows of length 1."""
    rows = json.loads(recorded.read_text(encoding="utf-8"))["rows"]
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
    options.intra_op_num_threads = 1  # a fixed order of additions, so that two builds give the same numbers
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(model: onnx.ModelProto, inputs: list[dict[str, NDArray[np.int64]]]) -> Array:
    """Return the model's vectors."""
    session = _session(model)
    return np.concatenate([session.run(["embedding"], each)[0] for each in inputs])


def reach(model: onnx.ModelProto, inputs: list[dict[str, NDArray[np.int64]]]) -> dict[str, Array]:
    """Return, for each product's input, the largest magnitude of each channel over all texts."""
    watched, names = with_activations(model)
    session = _session(watched)
    reach = {name: np.zeros(1, np.float32) for name in names}
    for each in inputs:
        for name, activation in zip(names, session.run(names, each), strict=True):
            reach[name] = np.maximum(reach[name], np.abs(activation).max(axis=(0, 1)))
    return reach


def quantise(model: onnx.ModelProto) -> onnx.ModelProto:
    """Round the matrices to eight bits."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        quantize_dynamic(
            model,
            path,
            op_types_to_quantize=["MatMul", "Attention", "Gather"],
            per_channel=True,
            weight_type=QuantType.QInt8,
            # onnx cannot infer the types of the outputs of onnxruntime's own operators.
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return onnx.load(path)


def demand(stage: str, vectors: Array, recorded: Array, least: float) -> None:
    """Print how near vectors are to the recorded ones. Raises BuildError if one is below *least*."""
    cosines = (vectors * recorded).sum(axis=1)
    print(f"{stage}: cosine to the recorded vectors: mean {cosines.mean():.6f}, min {cosines.min():.6f}")
    if not cosines.min() >= least:  # in this form so that NaN fails, too
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
        print(f"Measured for RANDOM_MEAN, PAIR_MEAN and SHIPPED_COSINES: {measured(OnnxEmbedder())}.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

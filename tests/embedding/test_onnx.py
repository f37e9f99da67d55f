"""The shipped model says what sentence-transformers says, and a user's export works."""

import array
import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from memd.embedding import UnavailableError
from memd.embedding.model import MODEL_FILE, MODEL_SHA256, TOKENIZER_FILE, TOKENIZER_SHA256
from memd.embedding.onnx import OnnxEmbedder, _saturates
from tools import build_model


def cosine(one: bytes, other: bytes) -> float:
    return float(np.frombuffer(one, "<f4") @ np.frombuffer(other, "<f4"))


def test_vectors_agree_with_sentence_transformers(shipped: OnnxEmbedder):
    """Every recorded text, short or long, in any script, has a cosine of at least 0.98."""
    texts, recorded = build_model.reference()
    vectors = np.stack([np.frombuffer(vector, "<f4") for vector in shipped.embed_documents(texts)])
    cosines = (vectors * recorded).sum(axis=1)
    assert len(texts) >= 40
    assert cosines.min() >= 0.98
    assert cosines.mean() >= 0.995


def test_the_shipped_files_are_those_that_were_built():
    assert hashlib.sha256(MODEL_FILE.read_bytes()).hexdigest() == MODEL_SHA256
    assert hashlib.sha256(TOKENIZER_FILE.read_bytes()).hexdigest() == TOKENIZER_SHA256


def test_the_build_takes_no_other_weights(tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"not the published ones")
    with pytest.raises(build_model.BuildError, match="published weights 53aa5117"):
        build_model.build(tmp_path)


def test_the_build_refuses_vectors_that_stray():
    recorded = np.eye(2, dtype=np.float32)
    build_model.demand("float32", recorded, recorded, 0.9999)
    for vectors in (recorded * 0.9998, recorded * np.nan):
        with pytest.raises(build_model.BuildError, match=r"needed is 0\.9999"):
            build_model.demand("float32", vectors, recorded, 0.9999)


def test_a_vector_depends_on_its_text_alone(shipped: OnnxEmbedder):
    texts = ["tabs", "the orchard was planted in three rows", "word " * 250]
    assert shipped.embed_documents(texts) == [shipped.embed_queries([text])[0] for text in texts]


def test_the_end_of_a_long_chunk_counts(shipped: OnnxEmbedder):
    start = "word " * 200
    assert cosine(*shipped.embed_documents([start + "apples " * 40, start + "database " * 40])) < 0.95


def test_what_the_model_cannot_read_is_cut(shipped: OnnxEmbedder):
    assert shipped.max_tokens == 254
    full = "word " * 254
    assert shipped.embed_queries([full])[0] == shipped.embed_queries([full + "apples " * 5_000])[0]


@pytest.mark.parametrize("text", ["", " \n", "\0", "a\0b", "\ud800", "x\udcff", "🚀" * 300, "́" * 50])
def test_any_text_has_a_vector_of_length_1(shipped: OnnxEmbedder, text: str):
    for vector in (shipped.embed_queries([text])[0], *shipped.embed_documents([text])):
        assert len(vector) == 4 * shipped.dim == 4 * 384
        assert math.hypot(*array.array("f", vector)) == pytest.approx(1, abs=1e-6)


def test_meaning_is_nearer_than_words(shipped: OnnxEmbedder):
    """A gene is nearer to the mutation that it is known for than to another note with its words."""
    query = shipped.embed_queries(["breast cancer gene"])[0]
    right, wrong = shipped.embed_documents(["BRCA1 mutation analysis", "Chicken breast with rice"])
    assert cosine(query, right) > cosine(query, wrong)


def test_it_answers_several_threads_at_once(shipped: OnnxEmbedder):
    from concurrent.futures import ThreadPoolExecutor

    texts = [f"note {number} on topic {number % 7}" for number in range(60)]
    with ThreadPoolExecutor(4) as pool:
        assert list(
            pool.map(lambda text: shipped.embed_queries([text])[0], texts)
        ) == shipped.embed_documents(texts)


def test_a_closed_model_says_so():
    embedder = OnnxEmbedder()
    embedder.close()
    with pytest.raises(UnavailableError, match="was closed"):
        embedder.embed_queries(["a"])[0]


def run_python(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False,
        env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_telemetry_is_off_before_onnxruntime_is_imported():
    """At the moment of its import the variable is 1, also where a user's environment says otherwise."""
    script = """
import sys, os
class Watch:
    def find_spec(self, name, path, target=None):
        if name == "onnxruntime":
            print(os.environ.get("ORT_DISABLE_TELEMETRY"))
sys.meta_path.insert(0, Watch())
from memd.embedding.onnx import OnnxEmbedder
assert "onnxruntime" not in sys.modules and "numpy" not in sys.modules
OnnxEmbedder()
"""
    assert run_python(script, ORT_DISABLE_TELEMETRY="0") == "1"


def test_onnxruntime_is_not_loaded_where_telemetry_was_switched_on():
    """Whoever takes the variable away after memd set it gets an error, not a reporting library."""
    script = """
import os, sys, memd
del os.environ["ORT_DISABLE_TELEMETRY"]
from memd.embedding.onnx import OnnxEmbedder
try:
    OnnxEmbedder()
except Exception as error:
    print(error.reason, "onnxruntime" in sys.modules)
"""
    assert run_python(script) == "model-failed False"


def test_without_numpy_the_reason_is_numpy_missing():
    script = """
import sys
sys.modules["numpy"] = None
from memd.embedding.onnx import OnnxEmbedder
try:
    OnnxEmbedder()
except Exception as error:
    print(type(error).__name__, error.reason)
"""
    assert run_python(script) == "UnavailableError numpy-missing"


def test_exact_products_are_chosen_where_the_processor_needs_them(monkeypatch: pytest.MonkeyPatch):
    """x86 without VNNI multiplies exactly; with it, or on another architecture, nothing is given up."""
    said = {"flags": ""}
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"flags : fpu avx2 {said['flags']} bmi2")
    assert _saturates()
    said["flags"] = "avx512_vnni"
    assert not _saturates()
    said["flags"] = "avx_vnni"
    assert not _saturates()
    said["flags"] = ""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert not _saturates()


def test_exact_products_give_the_same_vectors(shipped: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch):
    """The way for older processors is another kernel for the same numbers."""
    monkeypatch.setattr("memd.embedding.onnx._saturates", lambda: True)
    exact = OnnxEmbedder()
    for text in ("breast cancer gene", "word " * 250):
        assert cosine(exact.embed_queries([text])[0], shipped.embed_queries([text])[0]) > 0.9999


WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "ask", "tell", "red", "green")


def export(folder: Path, *, outputs: tuple[str, ...] = ("last_hidden_state",), types: bool = True) -> Path:
    """Write a tiny export as exporters do: row n of the table is n and n², and the token type is added."""
    folder.mkdir()
    rows = np.array([[number, number**2] for number in range(len(WORDS))], np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    if "sentence_embedding" in outputs:
        nodes.append(
            helper.make_node("ReduceMax", ["last_hidden_state", "axis"], ["sentence_embedding"], keepdims=0)
        )
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "length"]) for name in names]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    constants = [numpy_helper.from_array(rows, "table"), numpy_helper.from_array(np.array([1]), "axis")]
    body = helper.make_graph(nodes, "tiny", inputs, results, constants)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, folder / "model.onnx")
    write_tokenizer(folder / "tokenizer.json")
    configure(folder, pooling={"pooling_mode_mean_tokens": True})
    return folder


def write_tokenizer(path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(path))


def configure(
    folder: Path, *, pooling: dict[str, object], more: tuple[str, ...] = (), **prompts: str
) -> None:
    kinds = ["Transformer", "Pooling", "Normalize", *more]
    modules = [{"path": "pool" if kind == "Pooling" else "", "type": f"st.models.{kind}"} for kind in kinds]
    (folder / "pool").mkdir(exist_ok=True)
    files = {
        "modules.json": modules,
        "pool/config.json": pooling,
        "sentence_bert_config.json": {"max_seq_length": 6, "do_lower_case": True},
        "config_sentence_transformers.json": {"prompts": prompts, "default_prompt_name": None},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def with_weights_apart(folder: Path, ending: str) -> Path:
    """Put the constants of an export into a file of their own, which is mapped; return that."""
    graph = folder / "model.onnx"
    onnx.save(
        onnx.load(graph), graph,
        save_as_external_data=True, location=f"model.onnx{ending}", size_threshold=0,
    )  # fmt: skip
    return folder / f"model.onnx{ending}"


def numbers(vector: bytes) -> list[float]:
    return list(array.array("f", vector))


def unit(*values: float) -> list[float]:
    return pytest.approx([value / math.hypot(*values) for value in values], abs=1e-6)


def test_an_export_is_pooled_by_the_mean(tmp_path: Path):
    """[CLS] red [SEP] are the rows 2, 6 and 3: their mean, at length 1, is the vector."""
    embedder = OnnxEmbedder(export(tmp_path / "tiny"))
    assert numbers(embedder.embed_queries(["red"])[0]) == unit(2 + 6 + 3, 4 + 36 + 9)
    assert (embedder.dim, embedder.scripts) == (2, None)


@pytest.mark.parametrize("pooling", [{"pooling_mode_cls_token": True}, {"pooling_mode": "cls"}])
def test_an_export_is_pooled_by_its_first_token(tmp_path: Path, pooling: dict[str, object]):
    folder = export(tmp_path / "tiny", types=False)
    configure(folder, pooling=pooling)
    assert numbers(OnnxEmbedder(folder).embed_queries(["red"])[0]) == unit(2, 4)


def test_a_graph_that_pools_itself_is_believed(tmp_path: Path):
    folder = export(tmp_path / "tiny", outputs=("last_hidden_state", "sentence_embedding"))
    configure(folder, pooling={"pooling_mode_mean_tokens": True}, more=("Dense",))
    assert numbers(OnnxEmbedder(folder).embed_queries(["red"])[0]) == unit(6, 36)


def test_prefixes_are_put_in_front(tmp_path: Path):
    folder = export(tmp_path / "tiny")
    configure(folder, pooling={"pooling_mode_mean_tokens": True}, query="ask ", passage="tell ")
    embedder = OnnxEmbedder(folder)
    assert numbers(embedder.embed_queries(["red"])[0]) == unit(2 + 4 + 6 + 3, 4 + 16 + 36 + 9)
    assert numbers(embedder.embed_documents(["red"])[0]) == unit(2 + 5 + 6 + 3, 4 + 25 + 36 + 9)
    assert embedder.max_tokens == 6 - 2 - 1


def test_text_is_lowered_where_the_export_says_so(tmp_path: Path):
    embedder = OnnxEmbedder(export(tmp_path / "tiny"))
    assert embedder.embed_queries(["RED"])[0] == embedder.embed_queries(["red"])[0]


def test_another_setting_is_another_model(tmp_path: Path):
    ids = set()
    for number, settings in enumerate(({}, {"query": "ask "}, {"document": "tell "})):
        folder = (
            export(tmp_path / str(number) / "tiny") if (tmp_path / str(number)).mkdir() is None else tmp_path
        )
        configure(folder, pooling={"pooling_mode_mean_tokens": True}, **settings)
        ids |= {OnnxEmbedder(folder).model_id, OnnxEmbedder(folder).model_id}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "model.onnx").unlink(), r"holds no model\.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"holds no tokenizer\.json"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"\0" * 99), "cannot be loaded"),
        (lambda folder: (folder / "modules.json").write_text("{"), r"modules\.json cannot be read"),
        (lambda folder: (folder / "modules.json").write_text("{}"), "holds a dict, expected a list"),
        (lambda folder: configure(folder, pooling={"pooling_mode": "lasttoken"}), "pools by 'lasttoken'"),
        (lambda folder: configure(folder, pooling={"include_prompt": False}), "without the prompt"),
        (lambda folder: configure(folder, pooling={"pooling_mode": "mean"}, more=("Dense",)), "leaves out"),
    ],
)
def test_an_export_that_cannot_be_used_is_named(tmp_path: Path, spoil, words: str):
    folder = export(tmp_path / "tiny")
    spoil(folder)
    with pytest.raises(UnavailableError, match=words) as caught:
        OnnxEmbedder(folder)
    assert caught.value.reason == "model-failed"
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize("ending", ["_data", ".data"])
def test_weights_that_are_overwritten_change_nothing(tmp_path: Path, ending: str):
    """Longer, shorter or other content: the model was loaded from a copy, of which nothing is left to see."""
    folder, state = export(tmp_path / "tiny"), tmp_path / "memd"
    weights = with_weights_apart(folder, ending)
    state.mkdir(mode=0o700)
    script = f"""
import pathlib
from memd.config import UserConfig, WorkspaceConfig
from memd.embedding.provider import Providers
embedder = Providers()._loader(WorkspaceConfig(model={str(folder)!r}), UserConfig())()
before = embedder.embed_queries(["red"])[0]
for content in (b"", b"\\0" * 4, b"x" * 65536):
    pathlib.Path({str(weights)!r}).write_bytes(content)
    assert embedder.embed_queries(["red"])[0] == before
print(embedder.model_id)
"""
    known = OnnxEmbedder(folder).model_id
    assert run_python(script, XDG_STATE_HOME=str(tmp_path)) == known
    assert list(state.iterdir()) == []


def test_weights_are_used_as_they_are_where_no_copy_can_be_made(tmp_path: Path):
    """A full disk costs no search by meaning."""
    folder = export(tmp_path / "tiny")
    with_weights_apart(folder, "_data")
    embedder = OnnxEmbedder(folder, copies=tmp_path / "none")
    assert embedder.embed_queries(["red"])[0] == OnnxEmbedder(folder).embed_queries(["red"])[0]


def test_other_weights_are_another_model(tmp_path: Path):
    folder = export(tmp_path / "tiny")
    weights = with_weights_apart(folder, ".data")
    known = OnnxEmbedder(folder).model_id
    weights.write_bytes(bytes(reversed(weights.read_bytes())))
    assert OnnxEmbedder(folder).model_id != known

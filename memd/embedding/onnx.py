"""The embedding provider for ONNX models, run in this process.

The only importer of ``onnxruntime``, which is loaded with the first model: a daemon without numpy, or
without a model, still starts and searches by keyword. Knows nothing of queues; is thread-safe.

Each run embeds one text on one thread. Measured on two cores with texts of 256 pieces: two concurrent runs of
one thread each reach 97 texts/s, one run on two threads 53 to 65, batches of 8 at most 62 in total, and a
query of 12 words takes 1.15 ms on one thread against 1.65 on two. It also makes a vector a function of its
text alone: eight-bit models scale by the largest value in the batch, so other texts or padding change a
vector (cosine .997).
"""

import os
import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from memd.embedding import MODEL_FAILED, UnavailableError
from memd.embedding.model_folder import SHIPPED, ModelFolder, read_folder
from memd.embedding.tokenizer import Pieces, tokenizer_at
from memd.errors import NUMPY_MISSING, StorageError
from memd.process import private_folder
from memd.records import Tokenizer

# The graph inputs that memd can fill. Any other name means another kind of model.
KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
ELEMENT_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
# Fusing Add and LayerNormalization gives the same numbers more slowly: a fifth of the time of a text.
SLOW_FUSIONS = ["SkipLayerNormFusion"]
ERRORS_ONLY = 3  # onnxruntime's log level: its warnings are about graphs, where users can do nothing


class OnnxEmbedder:
    """One ONNX session and its tokenizer. Safe to call from several threads."""

    remote = False

    def __init__(
        self,
        folder: Path | None = None,
        tokenizer: Callable[[Path], Pieces] = tokenizer_at,
        *,
        copies: Path | None = None,
    ) -> None:
        """Load the export in *folder*, or the shipped model. Raises UnavailableError.

        *tokenizer* returns the one in a file, which others may share. Of weights that another program may
        overwrite, a copy is made in the folder *copies*.
        """
        self._numpy, onnxruntime = _libraries()
        self._folder = SHIPPED if folder is None else read_folder(folder)
        pieces = tokenizer(self._folder.tokenizer_file)
        self._pieces = pieces
        self.tokenizer: Tokenizer = pieces
        self.scripts = self._folder.scripts
        self.cosines = self._folder.cosines
        # The model reads the prefixes, too.
        self._document_pieces = self._folder.max_sequence - pieces.special_tokens
        prefixes = (self._folder.document_prefix, self._folder.query_prefix)
        self.max_tokens = self._document_pieces - max(pieces.count(prefix) for prefix in prefixes)
        with ExitStack() as kept:
            loaded = self._folder
            if copies is not None and loaded.weights:
                with suppress(StorageError, OSError):  # no space: as they are, as long as nobody writes them
                    loaded = kept.enter_context(_copied(loaded, copies))
            self._session: Any = _session(onnxruntime, loaded.model_file, self._folder.model_file)
            self.model_id = loaded.fingerprint()
        self._inputs = _inputs(self._session, self._folder)
        self._output = _output(self._session, self._folder)
        self.dim = len(self._vector("memd"))  # the first run also allocates memory for later ones

    def embed_documents(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per text, in order."""
        return [self._embed(self._folder.document_prefix + text) for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector per query, in order."""
        return [self._embed(self._folder.query_prefix + text) for text in texts]

    def close(self) -> None:
        """Free the model; later calls raise UnavailableError."""
        self._session = None

    def _embed(self, text: str) -> bytes:
        vector: bytes = self._vector(text).astype("<f4").tobytes()
        return vector

    def _vector(self, text: str) -> Any:
        numpy, session = self._numpy, self._session
        if session is None:
            raise UnavailableError(MODEL_FAILED, f"The model {self._folder.name} was closed.")
        ids = self._pieces.ids(text.lower() if self._folder.lower_case else text, self._document_pieces)
        values = {"input_ids": [ids], "attention_mask": [[1] * len(ids)], "token_type_ids": [[0] * len(ids)]}
        feed = {name: numpy.array(values[name], kind) for name, kind in self._inputs.items()}
        try:
            result = session.run([self._output], feed)[0]
        except Exception as error:  # onnxruntime's errors have no common base but this
            raise UnavailableError(MODEL_FAILED, f"{self._folder.model_file} failed: {error}") from error
        if result.ndim == 2:  # noqa: PLR2004  # (texts, dim): the graph pooled
            vector = result[0]
        else:  # without padding, every token counts
            vector = result[0, 0] if self._folder.pooling == "cls" else result[0].mean(axis=0)
        length = float(self._numpy.linalg.norm(vector.astype("float64")))
        if not 0 < length < float("inf"):
            raise UnavailableError(
                MODEL_FAILED,
                f"{self._folder.model_file} gave a vector of length {length}. Use another model.",
            )
        return vector / length


def _libraries() -> tuple[Any, Any]:
    """Return numpy and onnxruntime, imported now."""
    try:
        import numpy  # noqa: ICN001, PLC0415
    except ImportError as error:
        raise UnavailableError(
            NUMPY_MISSING, f"onnxruntime needs numpy, which cannot be imported ({error}): pip install numpy"
        ) from error
    # Set by memd/__init__.py. If it was removed since, this process would send usage data.
    if os.environ.get("ORT_DISABLE_TELEMETRY") != "1":
        raise UnavailableError(
            MODEL_FAILED, "ORT_DISABLE_TELEMETRY is not 1: onnxruntime would report home. It is not loaded."
        )
    try:
        import onnxruntime  # noqa: PLC0415
    except ImportError as error:
        raise UnavailableError(
            MODEL_FAILED, f"onnxruntime cannot be imported ({error}): pip install onnxruntime"
        ) from error
    return numpy, onnxruntime


@contextmanager
def _copied(folder: ModelFolder, copies: Path) -> Iterator[ModelFolder]:
    """Provide *folder* with its graph and weights in files that no other program can open afterwards.

    onnxruntime maps the weights: a file that is overwritten in place would change the vectors, and one that
    becomes shorter ends the process by SIGBUS. Weights that are read into memory instead took 65 MB more
    (multilingual-e5-small: 166 instead of 101), and twice the size of the file while they are loaded. The
    copy takes space on the disk until the model is freed.
    """
    with private_folder(copies) as private:
        for path in (folder.model_file, *folder.weights):
            shutil.copyfile(path, private / path.name)
        yield replace(folder, model_file=private / folder.model_file.name)


def _session(onnxruntime: Any, model_file: Path, named: Path) -> Any:
    """Load a graph; an error calls it *named*."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    # Arena and memory patterns would keep the memory of the largest run for ever; runs were within 2 %
    # without.
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    for pool in ("intra_op", "inter_op"):  # an idle daemon must not spin while it waits
        options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
    if _saturates():
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(
            str(model_file), options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOW_FUSIONS
        )
    except Exception as error:  # onnxruntime's errors have no common base but this
        raise UnavailableError(MODEL_FAILED, f"{named} cannot be loaded: {error}") from error


def _saturates() -> bool:
    """Return whether this processor's eight-bit products overflow silently.

    x86 before VNNI adds pairs of products in 16 bits. onnxruntime has an exact method for that, which halves
    the speed where it is not needed; it does not detect the need itself.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split()
    except OSError:  # macOS on Intel has no such file: prefer correct to fast
        return True
    return not {"avx512_vnni", "avx_vnni"} & set(flags)


def _inputs(session: Any, folder: ModelFolder) -> dict[str, str]:
    """Return the names and element types of the graph's inputs."""
    asked = {each.name: ELEMENT_TYPES.get(each.type) for each in session.get_inputs()}
    odd = sorted(name for name, kind in asked.items() if kind is None or name not in KNOWN_INPUTS)
    if odd or "input_ids" not in asked:
        raise UnavailableError(
            MODEL_FAILED,
            f"{folder.model_file} asks for {', '.join(odd) or 'no input_ids'}; memd can give "
            f"{', '.join(sorted(KNOWN_INPUTS))} as integers. Use an export of a text encoder.",
        )
    return {name: kind for name, kind in asked.items() if kind is not None}


def _output(session: Any, folder: ModelFolder) -> str:
    """Return the output to read: the vector pooled by the graph if there is one, otherwise the tokens."""
    names: list[str] = [each.name for each in session.get_outputs()]
    for name in ("sentence_embedding", "embedding"):
        if name in names:
            return name
    if folder.beyond:
        raise UnavailableError(
            MODEL_FAILED,
            f"{folder.model_file} leaves out what its modules.json lists: {', '.join(folder.beyond)}. "
            "Export it with its output sentence_embedding.",
        )
    return next((name for name in names if name in ("last_hidden_state", "token_embeddings")), names[0])

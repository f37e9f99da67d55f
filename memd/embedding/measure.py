"""`python -m memd.embedding.measure FOLDER`: loads a model folder and measures its speed and its cosines.

For `memctl models add`, which imports nothing of memd. Prints one JSON object; for a folder that memd cannot
use, one line on stderr, with exit code 1.
"""

import json
import sys
import time
from pathlib import Path
from statistics import median

from memd.embedding import Embedder, UnavailableError
from memd.embedding.cosines import measured
from memd.embedding.onnx import OnnxEmbedder

# About 200 words, as many as a chunk has by default.
CHUNK = "The heron stands in shallow water and waits for fish until the evening. " * 15
REPEATS = 5  # arbitrary; the median of five is steady enough to compare models


def main(folder: Path) -> int:
    """Print the dimension, the milliseconds per chunk, and how cosines become scores."""
    try:
        embedder = OnnxEmbedder(folder)
        taken_ms = ms_per_chunk(embedder)
        cosines = measured(embedder)
    except UnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    found = {"dim": embedder.dim, "ms_per_chunk": taken_ms}
    if cosines.is_measured:
        found |= {"cosine_zero": cosines.zero, "cosine_scale": cosines.scale, "random_sd": cosines.random_sd}
    sys.stdout.write(json.dumps(found))
    embedder.close()
    return 0


def ms_per_chunk(embedder: Embedder) -> float:
    """Return the median time of one chunk. Raises UnavailableError."""
    taken_ms = []
    embedder.embed_documents([CHUNK])  # the first run allocates memory
    for _ in range(REPEATS):
        start = time.perf_counter()
        embedder.embed_documents([CHUNK])
        taken_ms.append(1_000 * (time.perf_counter() - start))
    return round(median(taken_ms), 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

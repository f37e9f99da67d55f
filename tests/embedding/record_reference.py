"""Recorder of the vectors that sentence-transformers gives; run by hand, never by a test.

    python -m venv scratch && scratch/bin/pip install torch sentence-transformers
    scratch/bin/python tests/embedding/record_reference.py WEIGHTS_DIR

WEIGHTS_DIR is the folder of sentence-transformers/all-MiniLM-L6-v2 as it was published. The texts are those
of memd/embedding/model/reference.json, where another one is written as a row without a vector; each row gets
its vector as base64 of 384 little-endian float16 (half precision moves a cosine by about 1e-7 and halves the
file).
"""

import base64
import json
import sys
from pathlib import Path

RECORDED = Path(__file__).parents[2] / "memd" / "embedding" / "model" / "reference.json"


def main(weights: str) -> None:
    import sentence_transformers
    import torch

    texts = [row["text"] for row in json.loads(RECORDED.read_text(encoding="utf-8"))["rows"]]
    model = sentence_transformers.SentenceTransformer(weights, device="cpu")
    vectors = [model.encode(text, normalize_embeddings=True) for text in texts]
    made_by = f"sentence-transformers {sentence_transformers.__version__}, torch {torch.__version__}"
    rows = [
        {"text": text, "vector": base64.b64encode(vector.astype("<f2").tobytes()).decode("ascii")}
        for text, vector in zip(texts, vectors, strict=True)
    ]
    head = {"made_by": made_by, "script": "tests/embedding/record_reference.py", "rows": rows}
    RECORDED.write_text(json.dumps(head, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{len(rows)} vectors, {RECORDED.stat().st_size} bytes: {RECORDED}")


if __name__ == "__main__":
    main(sys.argv[1])

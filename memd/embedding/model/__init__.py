"""The model that memd ships: sentence-transformers/all-MiniLM-L6-v2 in eight bits.

NOTICE names its authors, tools/build_model.py made the file, and reference.json contains vectors computed by
sentence-transformers.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
MODEL_FILE = FOLDER / "model.onnx"
TOKENIZER_FILE = FOLDER / "tokenizer.json"
REFERENCE_FILE = FOLDER / "reference.json"

# Of the two files that `python tools/build_model.py` writes. A model in a user's folder may change under its
# name; these must not, because every stored vector depends on them.
MODEL_SHA256 = "49c51f0b42ab26a578ce13264f3b2a83bacdef2666ddb7952a43c867617a1eb8"
TOKENIZER_SHA256 = "5fd1c882abbd30517dced455a2c9768945ec726b96727927e4959348d9de550b"

MAX_SEQUENCE = 256  # word pieces, including [CLS] and [SEP]: max_seq_length as published
SPECIAL_TOKENS = 2  # these two; a constant, so that a start need not read the tokenizer
SCRIPTS = frozenset({"Latin"})  # trained on English; in other scripts similarity is chance

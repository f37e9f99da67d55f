"""How large a team's collections in Milvus are: arithmetic, from sizes of rows and of index types.

`TEXT` and `TERMS` are estimates near what sets had (61 to 102 weights a chunk); the sizes of indexes are from
their documentation. One replica, no headroom. Nothing of this was run at such sizes.
"""

from benchmarks import report

SIZES = (10**7, 10**8, 10**9)  # chunks
DIMENSIONS = 384
GB = 1e9

# Bytes a chunk.
VECTOR = DIMENSIONS * 4
HNSW_LINKS = 2 * 30 * 4 + 8  # M = 30, both directions on the lowest layer, and the layers above
RABITQ = DIMENSIONS / 8 + 8  # a bit a dimension, two factors
SQ8 = DIMENSIONS  # a byte a dimension, kept for refinement
DISKANN_MEMORY = VECTOR / 4  # codes of a quarter of the vector
DISKANN_DISK = VECTOR + 28 * 4 + DIMENSIONS * 2.7  # with the graph, and blocks that are not full
TERMS = 95  # different terms of a chunk of 200 words, and of its note's first chunk
SPARSE = TERMS * 8  # a row's number and a weight for each
KEYS = 8 + 24  # primary key with its bloom filter
FILTERS = 14 * 8 + 8 * 8 + 32  # marks, numbers, workspace
TEXT = 1_160  # what an answer shows of a chunk
COUNTS = 60  # share of a workspace's frequencies of words, at 10,000 chunks each
NODE_GB = 64


def main() -> None:
    options = report.arguments(__doc__).parse_args()
    report.show("team_sizing", [row(chunks) for chunks in SIZES], options)


def row(chunks: int) -> dict[str, object]:
    """Return the sizes for a number of chunks, in gigabytes."""
    memory = chunks * (RABITQ + KEYS)
    mapped = chunks * (SQ8 + SPARSE + TEXT + FILTERS)
    stored = chunks * (VECTOR + SQ8 + RABITQ + 2 * SPARSE + TEXT + COUNTS + FILTERS + KEYS)
    return {
        "chunks": chunks,
        "HNSW in memory GB": _gb(chunks * (VECTOR + HNSW_LINKS)),
        "RaBitQ codes GB": _gb(chunks * RABITQ),
        "SQ8 mapped GB": _gb(chunks * SQ8),
        "DISKANN memory GB": _gb(chunks * DISKANN_MEMORY),
        "DISKANN disk GB": _gb(chunks * DISKANN_DISK),
        "sparse mapped GB": _gb(chunks * SPARSE),
        "texts and filters mapped GB": _gb(chunks * (TEXT + FILTERS)),
        "RaBitQ: memory GB": _gb(memory),
        "RaBitQ: mapped GB": _gb(mapped),
        "object store GB": _gb(stored),
        f"query nodes of {NODE_GB} GB": max(1, round(_nodes(memory, mapped))),
    }


def _nodes(memory: float, mapped: float) -> float:
    """Return the nodes: half of a node's memory for what must be in it, a tenth of what is mapped cached."""
    return (memory + mapped / 10) / GB / (NODE_GB / 2)


def _gb(size_bytes: float) -> int:
    return round(size_bytes / GB)


if __name__ == "__main__":
    main()

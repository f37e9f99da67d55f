"""Who may import whom: the house's table, held against every import in the source."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The rooms, outermost last; a module may import its own room and the rooms that are listed for it.
VOCABULARY = {
    "memd",
    "memd.config",
    "memd.errors",
    "memd.analysis",
    "memd.temporary",
    "memd.records",
    "memd.registry",
    # What every chunk is scored by.
    "memd.index.columns",
    "memd.index.cosine",
    "memd.index.postings",
}
# What parts of the index stand on, from the disk up.
STORE = VOCABULARY | {"memd.fsio", "memd.index.schema", "memd.index.database"}
MATRICES = VOCABULARY | {"memd.fsio", "memd.index.vector_table", "memd.index.writer", "memd.index.vectors"}
VIEW = {"memd.index.ann_cache", "memd.index.postings", "memd.index.reader"} | {"memd.index.vectors"}
INDEX = {
    f"memd.index.{name}"
    for name in (
        "changes", "compaction", "database", "derived", "files", "first_pass", "first_pass_keeper",
        "inverted", "inverted_keeper", "ledger", "matrices", "pool", "reader", "snapshots", "vectors", "view",
        "writer",
    )
}  # fmt: skip
MAY_IMPORT = {
    "memd.sources": VOCABULARY,
    "memd.embedding": VOCABULARY,
    "memd.entries": VOCABULARY | {"memd.analysis", "memd.entries.secrets"},
    "memd.entries.secrets": VOCABULARY,
    "memd.fsio": VOCABULARY,
    "memd.index.schema": VOCABULARY,
    "memd.index.chunk_text": VOCABULARY,
    "memd.index.database": VOCABULARY | {"memd.fsio", "memd.index.schema"},
    "memd.index.writer": STORE,
    "memd.index.reader": VOCABULARY | {"memd.index.database"},
    "memd.index.reader": VOCABULARY | {"memd.index.reader"},
    "memd.index.prepare": VOCABULARY | {"memd.index.chunk_text", "memd.sources"},
    "memd.index.writer": STORE | {"memd.index.prepare", "memd.index.writer"},
    "memd.index.vectors": VOCABULARY | {"memd.fsio"},
    "memd.index.vector_table": VOCABULARY | {"memd.index.writer"},
    "memd.index.matrices": MATRICES,
    "memd.index.ann": VOCABULARY,
    "memd.index.ann_cache": VOCABULARY | {"memd.index.ann"} | {"memd.fsio", "memd.index.vectors"},
    "memd.index.ann_cache": VOCABULARY
    | {"memd.index.ann", "memd.fsio", "memd.index.ann_cache", "memd.index.derived_file"}
    | {"memd.index.vectors"},
    "memd.index.ann_cache": MATRICES | {"memd.index.ann_cache", "memd.index.matrices", "memd.index.writer"},
    "memd.index.postings": VOCABULARY | {"memd.fsio"},
    "memd.index.postings_cache": VOCABULARY
    | {"memd.fsio", "memd.index.postings", "memd.index.derived_file", "memd.index.snapshot"},
    "memd.index.derived_file": VOCABULARY | {"memd.fsio"},
    "memd.index.postings_cache": VOCABULARY
    | {"memd.fsio", "memd.index.postings", "memd.index.postings_cache", "memd.index.snapshot"}
    | {"memd.index.writer"},
    "memd.index.check": VOCABULARY | {"memd.index.postings", "memd.index.snapshot"},
    "memd.index.postings": VOCABULARY | {"memd.index.postings"},
    "memd.index.snapshot": VOCABULARY | VIEW,
    "memd.index.transaction": MATRICES | {"memd.index.matrices", "memd.index.prepare", "memd.index.writer"},
    "memd.index.compaction": MATRICES | {"memd.index.writer", "memd.index.matrices"},
    "memd.index.index": MATRICES
    | VIEW
    | {"memd.index.transaction", "memd.index.matrices", "memd.index.snapshot", "memd.index.writer"},
    "memd.index.index": VOCABULARY | INDEX,
    "memd.index.indexer": VOCABULARY
    | {"memd.index.transaction", "memd.index.index", "memd.index.prepare", "memd.index.suspects"}
    | {"memd.index.writer", "memd.sources"},
    "memd.index.suspects": VOCABULARY,
    "memd.index.check": VOCABULARY,
    "memd.index.check": VOCABULARY | {"memd.index.database", "memd.index.reader"},
    "memd.index.check": VOCABULARY | {"memd.index.check", "memd.index.snapshot"},
    "memd.index.check": VOCABULARY
    | INDEX
    | {"memd.index.check", "memd.index.index"}
    | {"memd.index.check", "memd.sources"},
    "memd.index.repair": VOCABULARY | INDEX | {"memd.index.check", "memd.index.index"},
    "memd.index.sidecar": VOCABULARY,
    "memd.index.sidecars": VOCABULARY | {"memd.index.sidecar"},
    "memd.index.sidecars": VOCABULARY | {"memd.index.sidecar", "memd.index.sidecars"},
    "memd.index.sidecar_sync": VOCABULARY
    | {"memd.index.index", "memd.index.matrices", "memd.index.sidecar", "memd.index.sidecars"},
    "memd.search": VOCABULARY | {"memd.index.reader", "memd.index.vectors", "memd.index.snapshot"},
    "memd.service": VOCABULARY
    | {"memd.service", "memd.search", "memd.index", "memd.embedding", "memd.sources", "memd.entries"}
    | {"memctl.lock", "memctl.paths", "memctl.protocol"},
    "memd.__main__": {"memd", "memd.service"},
    "memd.eval": VOCABULARY
    | {"memd.service", "memd.search", "memd.index", "memd.embedding", "memd.sources", "memctl.paths"},
    "memctl": set(),  # nothing of memd
}
# Modules without I/O and clock: what they may not import.
PURE = ["memd.sources.chunk", "memd.search.ranking", "memctl.protocol", "memd.search.query", "memd.records"]
IMPURE = {"os", "time", "socket", "pathlib", "subprocess", "sqlite3", "apsw", "asyncio", "shutil", "tempfile"}
# A library that is heavy, or that we may want to replace, is imported in one place.
BUILD = {"memd.embedding.model.build", "memd.embedding.model.graph"}
ONE_IMPORTER = {
    "apsw": {"memd.index.database", "memd.index.reader", "memd.index.writer"},
    "watchfiles": {"memd.sources.watch"},
    "onnxruntime": {"memd.embedding.onnx", *BUILD},
    "tokenizers": {"memd.embedding.tokenizer"},
    "numpy": {
        *(f"memd.index.{name}" for name in ("ann", "columns", "cosine", "owners", "posting_list")),
        *(f"memd.search.{name}" for name in ("bm25", "evidence", "folding", "top")),
        "memd.embedding.onnx",
        *BUILD,
    },
    "faiss": {"memd.index.ann"},
    "onnx": BUILD,
    "safetensors": BUILD,
    "pathspec": {"memd.sources.gitignore"},
    "re2": {"memd.search.globs", "memd.sources.ignore"},
    "yaml": {"memd.sources.markdown", "memd.entries.entry"},
    "rich": {"memctl.progress", "memctl.output.terminal"},
    "markdown_it": {"memd.sources.markdown"},
    "tomlkit": {"memd.config"},
    "mcp": {"memctl.mcp"},
}


def imports(source: str) -> set[str]:
    """Return every module that a source file imports, at the top or inside of a function."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> dict[str, set[str]]:
    """Return module name → its imports, for all of memd and memctl."""
    found = {}
    for package in ("memd", "memctl"):
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            found[name] = imports(path.read_text(encoding="utf-8"))
    return found


def inside(name: str, rooms: set[str]) -> bool:
    return any(name == room or (room != "memd" and name.startswith(room + ".")) for room in rooms)


def _is_way_to(package: str, imported: set[str]) -> bool:
    """Tell whether a package is named only on the way to a module in it: `from memd.index import schema`."""
    return any(other.startswith(f"{package}.") for other in imported)


def faults(table: dict[str, set[str]]) -> list[str]:
    """Return every import that the table does not allow."""
    found = []
    for name, imported in sorted(table.items()):
        rooms = [room for room in MAY_IMPORT if inside(name, {room})]
        ours = [i for i in imported if i in table and not _is_way_to(i, imported & table.keys())]
        if rooms:
            allowed = MAY_IMPORT[max(rooms, key=len)] | {max(rooms, key=len)}
            found += [f"{name} imports {other}" for other in ours if not inside(other, allowed)]
        elif name not in VOCABULARY | {"memd.index"}:
            if not inside(name, VOCABULARY):
                found.append(f"{name} is in no room")
        else:
            found += [f"{name} imports {other}" for other in ours if not inside(other, VOCABULARY)]
        for library, importers in ONE_IMPORTER.items():
            if any(i == library or i.startswith(library + ".") for i in imported) and name not in importers:
                found.append(f"{name} imports {library}")
        if name in PURE:
            found += [f"{name} is pure and imports {i}" for i in imported if i.partition(".")[0] in IMPURE]
    return found


def test_every_import_is_one_that_the_house_allows():
    """The rooms meet only where the table says so; each heavy library has one importer."""
    assert faults(modules()) == []


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("memd.search.search", "memd.index.indexer"),
        ("memd.index.indexer", "memd.search.search"),
        ("memctl.client", "memd.errors"),
        ("memd.api.search", "memctl.client"),
        ("memd.sources.scan", "watchfiles"),
        ("memd.search.ranking", "time"),
        ("memd.records", "memd.api.status"),
        ("memd.embedding.queue", "memd.index.index"),
    ],
)
def test_a_planted_import_is_found(module, planted):
    """The check fails where an import breaks the table."""
    table = modules()
    table[module] = table[module] | {planted}
    assert any(fault.startswith(module) for fault in faults(table))

"""Who may import whom: one row a package, held against every import in the source."""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

VOCABULARY = {
    "memd",  # its version
    "memd.text",
    "memd.process",
    "memd.config",
    "memd.daily",
    "memd.diaries",
    "memd.diagnostics",
    "memd.errors",
    "memd.events",
    "memd.fsio",
    "memd.languages",
    "memd.logs",
    "memd.records",
    "memd.lru",
    "memd.named_days",
    "memd.registry",
    "memd.sandbox",
    "memd.systemd",
    "memd.grouped_numbers",
}
# Package → what it may import beside itself.
MAY_IMPORT = {
    "memd.sources": VOCABULARY,
    "memd.embedding": VOCABULARY | {"memctl.paths"},
    "memd.index": VOCABULARY | {"memd.sources", "memd.entries.secrets"},
    "memd.rpc": VOCABULARY | {"memctl.protocol"},
    "memd.search": VOCABULARY | {"memd.index", "memctl.stop_words"},
    "memd.team": VOCABULARY | {"memd.entries.secrets", "memd.index", "memd.search", "memctl.paths"},
    "memd.entries": VOCABULARY | {"memctl.paths"},
    "memd.workspace": VOCABULARY
    | {"memd.sources", "memd.embedding", "memd.index", "memd.entries", "memd.team", "memctl.paths"},
    "memd.api": VOCABULARY
    | {"memd.sources", "memd.embedding", "memd.index", "memd.rpc", "memd.search", "memd.entries"}
    | {"memd.team", "memd.workspace", "memctl.codes", "memctl.protocol"},
    "memd.eval": VOCABULARY
    | {"memd.sources", "memd.embedding", "memd.index", "memd.search", "memd.api", "memctl.paths"},
    "memd.imports": VOCABULARY | {"memd.entries", "memd.sources", "memctl.paths"},
    "memd.move": VOCABULARY | {"memd.index", "memd.team.identity", "memctl.lock", "memctl.paths"},
    "memd.daemon": VOCABULARY
    | {"memd.sources", "memd.rpc", "memd.workspace", "memd.api", "memd.move"}
    | {"memctl.environment", "memctl.lock", "memctl.paths", "memctl.protocol"},
    "memd.__main__": {"memctl.environment", "memd", "memd.daemon", "memd.logs"},
    "memctl": set(),  # nothing of memd
}
# What of the vocabulary needs more than the vocabulary.
BESIDE = {
    "memd": {"memctl"},  # their common version
    **{module: {"memctl.paths"} for module in ("memd.fsio", "memd.process", "memd.registry")},
    "memd.diagnostics": {"memd.index.database"},
}
# Search reads an index through a view of one moment, and the arithmetic on its columns.
VIEW = {
    f"memd.index.{name}"
    for name in (
        "ann", "columns", "links", "outlines", "postings", "reader", "snapshot", "source_rows", "vectors",
        "vocabulary",
    )
}  # fmt: skip
# Modules without I/O and clock, and what they may not import.
PURE = [
    "memctl.protocol", "memd.text", "memd.daily", "memd.records", "memd.text", "memd.search.score",
    "memd.search.query", "memd.search.confidence", "memd.search.ranking", "memd.search.score",
    "memd.sources.chunk", "memd.sources.front_matter", "memd.sources.links", "memd.sources.markdown",
]  # fmt: skip
IMPURE = {"os", "time", "socket", "pathlib", "subprocess", "sqlite3", "apsw", "asyncio", "shutil", "tempfile"}
# A library that is heavy, or that we may want to replace, is imported in one place.
ONE_IMPORTER = {
    "apsw": {"memd.index.database"},
    "faiss": {"memd.index.ann"},
    "markdown_it": {"memd.sources.links", "memd.sources.markdown"},
    "mcp": set(),  # 0.6 s of a start; the tests speak to ours through it
    "onnx": set(),
    "onnxruntime": {"memd.embedding.onnx"},
    "re2": {"memd.entries.secrets", "memd.search.globs", "memd.sources.ignore"},
    "pymilvus": {"memd.team.milvus"},  # 2 s of a start, 120 MB; reads .env of the working directory
    "rapidfuzz": {"memd.search.spelling"},
    "rich": {"memctl.find.screen", "memctl.progress"},
    "safetensors": set(),
    "textual": {"memctl.find.rendered", "memctl.find.screen"},
    "tokenizers": {"memd.embedding.tokenizer"},
    "sentencepiece": {"memd.embedding.tokenizer"},
    "huggingface_hub": {"memctl.commands.models"},
    "tomlkit": {"memd.config", "memctl.model_store"},
    "watchfiles": {"memd.sources.watch"},
    "yaml": {"memd.entries.entry", "memd.imports.page", "memd.sources.front_matter"},
}


# Packages in which each constant has one place, and each module one name wherever it is imported.
ONE_PLACE = ("memctl", "memd")


@functools.cache
def nodes(source: str) -> list[ast.AST]:
    """Return all nodes of a source file, the module first."""
    return list(ast.walk(ast.parse(source)))


def imports(source: str) -> set[str]:
    """Return every module that a source file imports, at the top or inside of a function."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def sources(*packages: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the source of each module."""
    for package in packages:
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield name, path.read_text(encoding="utf-8")


@functools.cache
def modules() -> dict[str, set[str]]:
    """Return module name → its imports, for all of memd and memctl."""
    return {name: imports(source) for name, source in sources("memd", "memctl")}


def inside(name: str, packages: set[str]) -> bool:
    return any(name == one or (one != "memd" and name.startswith(one + ".")) for one in packages)


def _is_way_to(package: str, imported: set[str]) -> bool:
    """Tell whether a package is named only on the way to a module in it: `from memd.index import links`."""
    return any(other.startswith(f"{package}.") for other in imported)


def allowed(name: str) -> set[str] | None:
    """Return what a module may import; None where it is in no package of the table."""
    row = next((package for package in MAY_IMPORT if inside(name, {package})), None)
    if row is not None:
        return MAY_IMPORT[row] | {row}
    return VOCABULARY | BESIDE.get(name, set()) if inside(name, VOCABULARY) else None


def faults(table: dict[str, set[str]]) -> list[str]:
    """Return every import that the table does not allow."""
    found = []
    for name, imported in sorted(table.items()):
        ours = [one for one in imported if one in table and not _is_way_to(one, imported & table.keys())]
        may = allowed(name)
        if may is None:
            found.append(f"{name} is in no package of the table")
            continue
        found += [f"{name} imports {other}" for other in ours if not inside(other, may)]
        if inside(name, {"memd.search"}):
            found += [
                f"{name} imports {other}, which is no part of a view"
                for other in ours
                if inside(other, {"memd.index"}) and not inside(other, VIEW)
            ]
        for library, importers in ONE_IMPORTER.items():
            if any(one == library or one.startswith(library + ".") for one in imported):
                found += [f"{name} imports {library}"] if name not in importers else []
        if name in PURE:
            found += [
                f"{name} is pure and imports {one}" for one in imported if one.partition(".")[0] in IMPURE
            ]
    return found


def test_every_import_is_one_that_the_table_allows():
    """Packages meet only where the table says so; each heavy library has one importer."""
    assert faults(modules()) == []


def test_every_module_that_the_tables_name_is_there():
    """A row of a module that was moved would hold nothing."""
    there = modules().keys()
    named = {*PURE, *VIEW, *BESIDE, *MAY_IMPORT, *VOCABULARY} | set().union(*ONE_IMPORTER.values())
    assert named - there == set()


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("memd.sources.scan", "memd.index.index"), ("memd.embedding.queue", "memd.index.index"),
        ("memd.index.indexer", "memd.search.search"), ("memd.rpc.connection", "memd.api.params"),
        ("memd.search.search", "memd.index.indexer"), ("memd.entries.entry", "memd.index.index"),
        ("memd.workspace.sync", "memd.api.params"), ("memd.api.search", "memctl.client"),
        ("memd.eval.run", "memd.workspace.sync"), ("memd.daemon", "memd.eval.run"),
        ("memd.imports.run", "memd.index.index"), ("memctl.client", "memd.errors"),
        ("memd.records", "memd.api.status"), ("memd.sources.scan", "watchfiles"),
        ("memd.search.ranking", "time"),
    ],
)  # fmt: skip
def test_a_planted_import_is_found(module, planted):
    table = modules() | {module: modules()[module] | {planted}}
    assert any(fault.startswith(module) for fault in faults(table))


SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|DROP|ALTER|PRAGMA|WITH|BEGIN)\s")


def statements(table: dict[str, str]) -> list[str]:
    """Return each text of a module that begins as a statement of SQL does."""
    return [
        f"{name}:{node.lineno}"
        for name, source in table.items()
        for node in nodes(source)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]


def test_search_and_api_have_no_sql():
    planted = {"a": 'ROWS = f"""\n    SELECT {x} FROM chunks"""'}
    assert statements(dict(sources("memd/search", "memd/api")) | planted) == ["a:1"]


def circle(table: dict[str, set[str]]) -> list[str]:
    """Return modules of *table* that import each other, at run time or for their types; usually none."""
    graph = {
        name: {one for one in imported & table.keys() if not _is_way_to(one, imported & table.keys())}
        for name, imported in table.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other():
    """A newcomer can read each module after those that it imports, types included."""
    assert circle(modules()) == []


# Of memctl: a package imports those before it; what is in none is below all of them.
LAYERS = ("output", "agents", "mcp", "lsp", "find", "commands")


def layer(name: str) -> int:
    package = name.removeprefix("memctl.").partition(".")[0]
    if name == "memctl.__main__":
        return len(LAYERS)
    # The table of commands imports nothing.
    return LAYERS.index(package) if package in LAYERS and name != "memctl.commands" else -1


def upward(table: dict[str, set[str]]) -> list[str]:
    """Return each import within memctl of a module in a package above."""
    ours = {name: found & table.keys() for name, found in table.items() if inside(name, {"memctl"})}
    return [
        f"{name} imports {other}"
        for name, imported in ours.items()
        for other in imported
        if other in ours and layer(other) > layer(name) and not _is_way_to(other, imported)
    ]


def test_no_module_of_memctl_imports_one_above():
    assert upward(modules()) == []
    planted = {"memctl.client": {"memctl.output.page"}, "memctl.find.screen": {"memctl.commands.open"}}
    assert len(upward(modules() | planted)) == 2


def test_a_planted_circle_is_found():
    table = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert circle(table) == []
    assert circle(table | {"c": {"a"}}) != []


def bound(source: str, known: set[str]) -> dict[str, str]:
    """Return name → full name of what a module imports of *known* modules, and of the modules themselves."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in nodes(source)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module in known or f"{node.module}.{alias.name}" in known
    }


def private_names(table: dict[str, str]) -> list[str]:
    """Return each private name of a module of *table* that another module of it uses."""
    found = []
    for name, source in table.items():
        ours = bound(source, set(table))
        attributes = [
            f"{ours[node.value.id]}.{node.attr}"
            for node in nodes(source)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours
        ]
        for full in [*ours.values(), *attributes]:
            own = full.rpartition(".")[2]
            found += [f"{name} uses {full}"] if own.startswith("_") and not own.startswith("__") else []
    return found


def several_names(table: dict[str, str]) -> list[str]:
    """Return each module of *table* that is imported under another name than its own."""
    return [
        f"{name} imports {full} as {alias}"
        for name, source in table.items()
        for alias, full in bound(source, set(table)).items()
        if full in table and alias != full.rpartition(".")[2]
    ]


def twice_defined(table: dict[str, str]) -> list[str]:
    """Return each constant, type variables aside, that several modules of *table* define with one value."""
    places = defaultdict(list)
    for name, source in table.items():
        for node in ast.iter_child_nodes(nodes(source)[0]):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                value = ast.unparse(node.value)
                if isinstance(target, ast.Name) and target.id.isupper() and not value.startswith("TypeVar("):
                    places[target.id, value].append(name)
    return [f"{name} is in {', '.join(found)}" for (name, _), found in places.items() if len(found) > 1]


def test_no_private_name_crosses_a_module():
    """What another module uses has a public name."""
    assert private_names(dict(sources("memd", "memctl"))) == []


def test_each_module_is_imported_under_its_own_name():
    """A reader recognizes a module wherever it is used."""
    assert several_names(dict(sources(*ONE_PLACE))) == []


@pytest.mark.parametrize("package", ONE_PLACE)
def test_no_constant_is_defined_twice(package):
    """A constant with one name and one value has one place in a package; neither package has the other's."""
    assert twice_defined(dict(sources(package))) == []


@pytest.mark.parametrize(
    ("check", "planted"),
    [
        (private_names, "from a import _b"), (private_names, "from p import a\na._b()"),
        (several_names, "from p import a as other"), (twice_defined, "LIMIT = 10"),
        (twice_defined, "LIMIT: Final = 10"),
    ],
)  # fmt: skip
def test_a_planted_second_name_is_found(check, planted):
    table = {"p": "", "a": "LIMIT = 10", "p.a": "", "p.b": "from p import a\nfrom a import LIMIT\na.c(LIMIT)"}
    assert check(table) == []
    assert check(table | {"p.c": planted}) != []

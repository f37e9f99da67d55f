"""Vectors that something overwrites while memd runs: no wrong hit, and it heals by itself."""

import pytest
from daemon_process import folder_of, hurried, until

DIM_BYTES = 384 * 4
# By their words these have nothing in common with what is asked.
NOTES = {
    "gene.md": "# BRCA1\n\nA change in this gene raises the risk of breast cancer.\n",
    "oil.md": "# Chain\n\nThe bicycle chain wants a drop of oil each month.\n",
    "rye.md": "# Rye\n\nThe dough rests a night in a cool room.\n",
}


@pytest.fixture(scope="module")
def daemon(module_daemon):
    """A daemon that looks for damage where a query has met some, and not by itself soon after its start."""
    yield module_daemon.start(under=hurried("memd.workspace.maintenance.SCRUB_AFTER_S = 3600.0"))
    assert module_daemon.untruths() == []


@pytest.fixture
def notes(daemon, tmp_path):
    """The daemon and a workspace, with the file of its vectors."""
    others = {*daemon.state.glob("*/vectors.*.f32")}
    root = folder_of(tmp_path / "notes", NOTES)
    workspace = daemon.add(root)
    [matrix] = {*daemon.state.glob("*/vectors.*.f32")} - others
    until(lambda: daemon.call("search", query="tumour", workspace=workspace)["degraded"] == [])
    return daemon, workspace, matrix


def overwrite(matrix, rows: int) -> None:
    """Give every row the vector of the last one."""
    block = matrix.read_bytes()[: rows * DIM_BYTES]
    with matrix.open("r+b") as file:
        file.write(block[-DIM_BYTES:] * rows)


METHODS = {
    "search": {"query": "breast cancer gene"}, "recall": {"query": "breast cancer gene"},
    "similar": {"path": "gene.md"}, "why": {"query": "breast cancer gene", "path": "oil.md"},
    "explain": {"query": "breast cancer gene", "explain": True},
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_from_an_overwritten_matrix_is_one_by_words_and_then_it_heals(notes, method):
    daemon, workspace, matrix = notes

    def ask(limit=9):
        called = "search" if method == "explain" else method
        return daemon.call(called, workspace=workspace, limit=limit, **METHODS[method])

    whole = ask(limit=8)  # the same question would be answered from memory, rightly
    assert whole["degraded"] == []
    overwrite(matrix, len(NOTES))
    answer = ask()
    assert (answer["mode"], answer["degraded"]) == ("keyword", ["vectors-corrupt"])
    for hit in answer.get("hits", []):
        assert hit["path"] == "gene.md", "only by its words"
    if method == "explain":
        assert answer["explanation"]["vector_arm"] == "vectors-corrupt"
    healed = until(lambda: (found := ask())["degraded"] == [] and not found["index"]["pending"] and found)
    assert healed.get("hits") == whole.get("hits")
    assert healed.get("text") == whole.get("text")
    status = daemon.call("status", workspace=workspace)["workspaces"][0]
    assert (status["vectors"], status["damaged_rows"]) == (len(NOTES), len(NOTES) - 1), (
        "the last row is as it was"
    )


def test_a_person_is_told(notes):
    daemon, workspace, matrix = notes
    overwrite(matrix, len(NOTES))
    said = daemon.memctl("search", "--workspace", workspace, "breast cancer gene")
    assert said.returncode == 0
    assert "gene.md" in said.stdout
    assert "vectors on disk were damaged" in said.stderr

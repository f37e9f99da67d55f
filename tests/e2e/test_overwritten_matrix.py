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


@pytest.fixture
def notes(unstarted, tmp_path):
    """A daemon that looks for damage where a query has met some, a workspace and the file of its vectors."""
    daemon = unstarted.start(under=hurried("memd.workspace.maintenance.SCRUB_AFTER_S = 3600.0"))
    workspace = daemon.add(folder_of(tmp_path / "notes", NOTES))
    [matrix] = daemon.state.glob("*/vectors.*.f32")
    until(lambda: daemon.call("search", query="tumour", workspace=workspace)["degraded"] == [])
    return daemon, workspace, matrix


def overwrite(matrix, rows: int) -> None:
    """Give every row the vector of the last one."""
    block = matrix.read_bytes()[: rows * DIM_BYTES]
    with matrix.open("r+b") as file:
        file.write(block[-DIM_BYTES:] * rows)


def test_an_answer_from_an_overwritten_matrix_is_one_by_words_and_then_it_heals(notes):
    """And a person is told."""
    daemon, workspace, matrix = notes

    def ask(limit=9):
        return daemon.call("search", workspace=workspace, limit=limit, query="breast cancer gene")

    whole = ask(limit=8)  # the same question would be answered from memory, rightly
    assert whole["degraded"] == []
    overwrite(matrix, len(NOTES))
    said = daemon.memctl("search", "--workspace", workspace, "breast cancer gene")
    assert (said.returncode, "gene.md" in said.stdout) == (0, True)
    assert "vectors on disk were damaged" in said.stderr
    healed = until(lambda: (found := ask())["degraded"] == [] and not found["index"]["pending"] and found)
    assert healed["hits"] == whole["hits"]
    status = daemon.status(workspace)
    assert (status["vectors"], status["damaged_rows"]) == (len(NOTES), len(NOTES) - 1), (
        "the last row is as it was"
    )

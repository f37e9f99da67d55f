"""A model's file that is overwritten while memd has it loaded."""

import shutil

import onnx
import pytest
from daemon_process import folder_of, until

from memd.embedding.model import FOLDER


def test_memd_outlives_an_overwritten_model(daemon, tmp_path):
    """Its weights are mapped, and a shorter file would end the process: the vectors stay the same."""
    model = folder_of(tmp_path / "model")
    shutil.copy(FOLDER / "tokenizer.json", model)
    onnx.save(
        onnx.load(FOLDER / "model.onnx"), model / "model.onnx",
        save_as_external_data=True, location="model.onnx_data",
    )  # fmt: skip
    weights = model / "model.onnx_data"
    assert weights.stat().st_size > 1e7
    folder_of(daemon.home, {"config/memd/config.toml": f"models = ['{model}']\n"})
    heron = {"heron.md": "A grey bird that stands by the weir.\n"}
    root = folder_of(tmp_path / "notes", heron | {"memory/config.toml": f"model = '{model}'\n"})
    workspace = daemon.add(root)
    until(lambda: daemon.status()["state"] == "ready")
    before = daemon.call("search", query="which animal fishes here", mode="vector", workspace=workspace)
    assert [hit["path"] for hit in before["hits"]] == ["heron.md"]
    assert list(daemon.state.glob("eval-*")) == []

    process = daemon.call("memd.hello")["pid"]
    with weights.open("r+b") as overwritten:
        overwritten.truncate(1000)
    (root / "otter.md").write_text("An otter sleeps among the reeds beside the weir.\n")
    until(lambda: daemon.status()["vectors"] == 2)

    def scores() -> dict[str, float]:
        after = daemon.call("search", query="which animal fishes here", mode="vector", workspace=workspace)
        return {hit["path"]: hit["score"] for hit in after["hits"]}

    until(lambda: "otter.md" in scores())
    assert scores()["heron.md"] == pytest.approx(before["hits"][0]["score"], abs=1e-5)
    assert daemon.call("memd.hello")["pid"] == process

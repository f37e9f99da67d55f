"""Notes in scripts that the model does not read: found by their words, never embedded, and told of.

With the shipped model, which reads Latin letters.
"""

import json
import signal

import pytest
from daemon_process import folder_of, until

from memd.embedding.model import FOLDER

NOTES = {
    "zh.md": "# 发动机\n\n发动机要在星期四修理好，费用是四百元。\n",
    "ja.md": "# 旅行\n\n来週は京都の金閣寺へ行きます。予約は木曜日です。\n",
    "ko.md": "# 회의\n\n회의는 목요일 오후에 열립니다. 예산을 다룹니다.\n",
    "ru.md": "# Двигатель\n\nДвигатель починят в четверг, это стоит четыреста рублей.\n",
    "mixed.md": "# Engine\n\nThe engine (发动机, двигатель) will be repaired on Thursday in the garage.\n",
    "en.md": "# Garden\n\nThe heron stands by the weir and waits for fish.\n",
}


@pytest.fixture(scope="module")
def notes(module_daemon):
    """A running daemon with these notes, wholly searchable; for tests that only read."""
    daemon = module_daemon.start()
    yield daemon.workspace(daemon.home / "notes", NOTES)
    assert daemon.untruths() == []


def test_status_counts_what_gets_no_vector(notes):
    until(lambda: not notes.status()["first"])  # it is noted a moment after the last vector
    known = notes.status()
    assert (known["chunks"], known["vectors"], known["pending"], known["unreadable"]) == (6, 2, 0, 4)
    assert (known["state"], known["embedded"], known["first"]) == ("ready", 1.0, False)
    assert "unreadable  4 chunks" in notes.daemon.memctl("status").stdout


def test_why_says_that_the_model_does_not_read_it(notes):
    told = notes.call("why", query="mending a motor", path="zh.md")
    assert (told["stage"], told["facts"]["explanation"]["unseen"]) == ("unmatched", ["script"])
    assert told["text"].endswith("and the model does not read its script")
    told = notes.call("why", query="цапля", path="en.md")
    assert "the model does not read the query's script" in told["text"]
    told = notes.call("why", query="发动机", path="zh.md", min_score=1.0)
    assert told["facts"]["vector_arm"] == "script"


def test_similar_notes_are_found_by_words_at_once(notes):
    answer = notes.call("similar", path="zh.md")
    assert (answer["mode"], answer["degraded"]) == ("keyword", [])
    assert answer["hits"][0]["path"] == "mixed.md"


def test_an_entry_in_such_a_script_is_stored_at_once(daemon, tmp_path):
    root = folder_of(tmp_path / "notes", {"old.md": "发动机要在星期四修理好，费用是四百元。\n"})
    daemon.add(root)
    stored = daemon.call(
        "extract_memory",
        workspace=str(root),
        topic="facts",
        title="发动机",
        content="发动机要在星期四修理好，费用是五百元。",
    )
    assert [note["path"] for note in stored["similar"]] == ["old.md"]


def test_init_names_the_share(unstarted, tmp_path):
    mixed, english = folder_of(tmp_path / "mixed", NOTES), tmp_path / "english"
    folder_of(english, {"en.md": NOTES["en.md"]})
    share = "67 % of these notes are in a script or language that the model does not read"
    # It waits for the words for two seconds, in which a machine under load has not read them.
    said = until(lambda: share in (told := unstarted.memctl("init", str(mixed)).stdout) and told)
    assert "pip install ./models, then memctl models use multilingual -w " in said
    assert "does not read" not in unstarted.memctl("init", str(english)).stdout


def test_the_key_scripts_decides_for_a_model_that_memd_does_not_know(unstarted):
    home = unstarted.home
    model = folder_of(home / "model")
    for name in ("model.onnx", "tokenizer.json"):
        (model / name).symlink_to(FOLDER / name)
    config = f"model = {json.dumps(str(model))}\n"
    root = folder_of(home / "notes", NOTES | {"memory/config.toml": config})
    allowed = f"models = [{json.dumps(str(model))}]\n"
    mine = folder_of(home / "config/memd", {"config.toml": allowed}) / "config.toml"
    daemon = unstarted.start()
    daemon.add(root)
    assert daemon.status(root)["unreadable"] == 0
    for scripts, unreadable in (
        (["Latin", "Cyrillic"], 3),
        (["Latin"], 4),
        (["Latin", "Han", "Hangul"], 1),
    ):
        mine.write_text(f"{allowed}scripts = {json.dumps(scripts)}\n")
        daemon.process.send_signal(signal.SIGHUP)

        def settled(expected=unreadable):
            known = daemon.status(root)
            return known.get("unreadable") == expected and known["vectors"] == 6 - expected

        assert until(settled)

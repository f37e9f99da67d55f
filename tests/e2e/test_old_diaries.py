"""Diaries are found however old they are, unless the workspace says that nothing is left of them."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

SAMPLE = Path(__file__).parents[1] / "sample"


def test_a_diary_note_of_400_days_that_alone_has_all_the_words_is_first(daemon, tmp_path):
    """Before notes that have some of them; with `decay_floor = 0` it is lost."""
    root = tmp_path / "notes"
    shutil.copytree(SAMPLE, root)
    old = f"diary/{datetime.now().astimezone().date() - timedelta(days=400)}.md"
    (root / "diary").mkdir()
    (root / old).write_text("Ruth paid the glazier for the cracked skylight in the attic.\n")
    for word in ("attic", "glazier", "skylight", "Ruth"):
        (root / f"{word[0]}.md").write_text(
            f"In May we planted two apple trees behind the house, and nobody looked for the {word} then.\n"
        )
    workspace = daemon.add(root)
    query = "who paid the glazier for the skylight in the attic"
    answer = daemon.call("search", workspace=workspace, query=query, explain=True)
    assert answer["hits"][0]["path"] == old
    assert answer["hits"][0]["explanation"]["decay"]["floor"] == answer["explanation"]["decay_floor"] == 0.95
    assert daemon.memctl("search", "--files", "-w", workspace, query).stdout.splitlines()[0] == str(
        root / old
    )
    daemon.call("workspace.configure", workspace=workspace, settings={"decay_floor": 0.0})
    assert daemon.found(query, workspace=workspace)[0] != old

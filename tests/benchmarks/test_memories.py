"""The benchmark of memories: days, relevant ranks and a peer's run are those computed by hand."""

import json
import sys

from benchmarks import memories

SAID = {
    "S1": ("2023-05-08 13:56", "Anna: We planted three apple trees behind the shed."),
    "S2": ("2023-05-30 09:10", "Ben: The bicycle has a new chain now."),
}


def written(folder):
    """A conversation of two sessions of one turn each, with a question about the first."""
    head = "query-id\tcorpus-id\tscore\n"
    lines = {
        "sessions/conv-1": [
            {"_id": name, "title": f"A and B, session {name[1]}, {at}", "text": text}
            for name, (at, text) in SAID.items()
        ],
        "turns": [
            {"_id": f"conv-1/D{name[1]}:1", "title": f"session {name[1]}", "text": text,
             "metadata": {"session": int(name[1]), "date": at.replace(" ", "T"),
                          "speaker": text.split(":")[0]}}
            for name, (at, text) in SAID.items()
        ],
    }  # fmt: skip
    asked = {"_id": "q0", "text": "Where are the apple trees?", "metadata": {"category": "single_hop"}}
    for part, documents in lines.items():
        (folder / part).mkdir(parents=True)
        (folder / part / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
        (folder / part / "queries.jsonl").write_text(json.dumps(asked))
        right = "S1" if part != "turns" else "conv-1/D1:1"
        (folder / part / "qrels.tsv").write_text(f"{head}q0\t{right}\t1\n")
    (folder / "peer.json").write_text(json.dumps([["conv-1", "Where are the apple trees?", 4, [2, 1]]]))


def test_each_layout_is_measured_and_compared(tmp_path, monkeypatch, capsys):
    """Ours has the session first, the peer second: what is relevant among one differs by one."""
    written(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["memories", str(tmp_path), "--recent", "--peer", f"{tmp_path}/peer.json"]
    )
    memories.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = {
        layout: next(row for row in rows if row[: len(layout.split())] == layout.split() and "all" in row)
        for layout in ("sessions", "recent", "pages", "turns", "the peer", "sessions minus the peer")
    }
    any_at_1 = {layout: row[row.index("all") + 2] for layout, row in shown.items()}
    assert any_at_1 == {
        "sessions": "1.0", "recent": "1.0", "pages": "1.0", "turns": "1.0",
        "the peer": "0.0000", "sessions minus the peer": "1.0",
    }  # fmt: skip


def test_the_newest_session_was_yesterday():
    documents = [{"_id": name, "title": at, "text": ""} for name, (at, _) in SAID.items()]
    assert [one["_id"] for one in memories.dated(documents, is_recent=False)] == [
        "memory/sessions/2023-05-08-1#S1",
        "memory/sessions/2023-05-30-2#S2",
    ]
    assert [one["_id"] for one in memories.dated(documents, is_recent=True)] == [
        "memory/sessions/2025-12-09-1#S1",
        "memory/sessions/2025-12-31-2#S2",
    ]

"""A person can read why a hit has its score, and why a note is not among the hits."""

import json
import re
import subprocess
import sys

import pytest
from sample_answers import found, hit

from memctl import exits
from memctl.__main__ import main
from memctl.commands import search
from memctl.commands.why import page as why_page
from memctl.output import caveats, hits
from memctl.output.hits import PageStyle
from memctl.output.marker import MATCH

CWD = "/home/ada/work/notes"


def term(text: str, **changes) -> dict:
    return {
        "term": text, "prefix": False, "times": 1, "document_frequency": 12, "idf": 4.0, "count": 1,
        "first_count": 0, "file_count": 2, "part": 2.0, "first_part": 0.0, "file_part": 2.5,
    } | changes  # fmt: skip


def explanation(**changes) -> dict:
    """As the daemon sends it with a hit."""
    return {
        "vector": {
            "rank": 1, "in_pool": True, "cosine": 0.55, "source_cosine": 0.35, "source_share": 0.25,
            "score": 0.5, "weight": 0.7, "part": 0.35,
        },
        "keyword": {
            "rank": 3, "in_pool": True, "tier": "fts", "score": 0.5, "weight": 0.3, "part": 0.15,
            "terms": [term("breast")], "lacking": ["gene"],
            "length": {"terms": 40, "norm": 1.0}, "first_length": {"terms": 1200, "norm": 2.0},
            "file_length": {"terms": 1340, "norm": 3.0},
            "bm25": 2.0, "first_bm25": 0.0, "file_bm25": 2.5, "evidence": 1.75, "reachable": 8.0,
            "shares": {"chunk": 0.5, "first": 0.2, "file": 0.3},
        },
        "unseen": [], "named": None, "superseded_by": [], "ahead_of": None,
        "merged": 0.5, "score": 0.5, "order": 0.5,
        "decay": {
            "factor": 1.0, "dated": False, "fades": None, "age_days": 3, "half_life_days": 30.0, "floor": 0.5,
        },
    } | changes  # fmt: skip


STAGES = {
    "chunks": 1234, "filtered": 1000, "outside_pools": 0, "below_floor": 200, "gone": 0, "folded": 4,
    "joined": 0, "per_source": 0, "limit": 29, "hits": 1,
}  # fmt: skip
MADE = {
    "terms": [{"text": "breast", "prefix": False}, {"text": "会", "prefix": True}], "left_out": ["the"],
    "spelled": [], "unread": [], "read": 1.0,
    "filters": [{"filter": "path", "value": "a/**"}, {"filter": "phrase", "value": "x y"},
                {"filter": "excluded", "value": "no"}],
    "tier": "fts", "average_length": 40.0, "fusion": "weighted", "weights": {"vector": 0.7, "keyword": 0.3},
    "half_life_days": 30.0, "decay_floor": 0.5, "floor": 0.1, "limit": 1, "per_source": 3, "pool": 300,
    "vector_pool": 300, "keyword_pool": 12, "stages": STAGES, "model_id": "mini:1", "vector_arm": None,
}  # fmt: skip
WHY = {
    "workspace": "/home/ada/work", "path": "a.md", "line": None, "stage": "outranked",
    "text": "a.md:1-2 would be hit 23, and the limit is 10", "advice": "memctl search --limit 23",
    "facts": {"explanation": explanation(), "has": ["breast"], "lacks": ["gene", "risk"], "vector_arm": None},
    "mode": "hybrid", "degraded": [], "index": {"first": False},
}  # fmt: skip


def page(colour=False, made=None, **changes) -> str:
    answer = found(hit(explanation=explanation(**changes)), explanation=MADE | (made or {}))
    return hits.people(answer, query="breast", style=PageStyle(CWD, colour))


def test_a_score_is_shown_as_a_sum_of_products():
    assert page().split("\n\n")[1].splitlines() == [
        "    score    0.3500 + 0.1500 = 0.5000",
        "    meaning  0.5000 · 0.70 = 0.3500, rank 1",
        "             0.5500 · 0.75 here + 0.3500 · 0.25 in its file",
        "    words    0.5000 · 0.30 = 0.1500, rank 3, tier fts",
        "             term      idf  chunks  asked  here  in first  in file    adds",
        "             breast   4.00      12      1     1         0        2   1.750",
        "             not in the file: gene",
        "             long                            40     1,200    1,340",
        "             counts                         0.5       0.2      0.3",
        "             tanh(2 · 1.750 / 8.000) = 0.5000",
    ]


def test_age_is_a_factor_with_its_days():
    old = {
        "factor": 0.625, "dated": True, "fades": "name", "age_days": 60, "half_life_days": 30.0, "floor": 0.5,
    }  # fmt: skip
    assert "0.5000, · 0.6250 at 60 days (its name is a day) = 0.3125" in page(decay=old)
    unknown = old | {"fades": "another-reason"}
    assert "0.5000, · 0.6250 at 60 days = 0.3125" in page(decay=unknown)
    assert "days = " not in page()


@pytest.mark.parametrize(
    ("floor", "said"),
    [
        (0.5, "a diary keeps 50% of its score; half of the rest is left after 30 days"),
        (0.0, "half of a diary's score is left after 30 days"),
    ],
)
def test_what_age_takes_is_said(floor, said):
    assert said in page(made={"decay_floor": floor})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vector": None, "unseen": ["no-vector-yet"]}, "it is not embedded yet: only words count"),
        ({"vector": None, "unseen": ["script"]}, "the model does not read its script: only words count"),
        ({"vector": None, "unseen": ["long"]}, "beyond the first parts of a long note: only words count"),
        ({"vector": None, "unseen": ["vector-arm-did-not-run"]}, "the search by meaning did not run"),
        ({"keyword": None, "unseen": ["keyword-arm-did-not-run"]}, "the search by words did not run"),
        ({"unseen": ["brand-new"]}, "brand-new"),
        ({"named": {"words": ["OPS-1"], "score": 0.9}, "merged": 0.9}, "= 0.5000, named: 0.9000"),
        ({"named": {"words": ["OPS-1"], "score": 0.4}}, "OPS-1: comes first; 0.4000 by what is named alone"),
    ],
)
def test_an_arm_that_had_no_say_is_told(changes, said):
    assert said in page(**changes)


def test_a_chunk_outside_of_a_pool_says_so():
    assert "rank 512 and not a candidate" in page(
        vector=explanation()["vector"] | {"rank": 512, "in_pool": False}
    )


def test_how_the_answer_was_made_stands_below_the_hits():
    dropped = "4 folded into better ones + 29 beyond the limit"
    assert page().split("\n\n")[2].splitlines() == [
        "how this answer was made",
        "    for      breast, 会*; not for the",
        '    filters  path:a/**, "x y", -no',
        "    meaning  300 candidates (at most 300); model mini:1",
        "    words    12 candidates (at most 300); tier fts",
        "    weights  0.70 meaning, 0.30 words; weighted",
        "    age      a diary keeps 50% of its score; half of the rest is left after 30 days",
        f"    chunks   1,234 = 1,000 filtered out + 200 below the floor + {dropped} + 1 returned",
        "    limits   score 0.1 or more, at most 1 returned, 3 a file",
    ]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"vector_pool": None, "vector_arm": "script"}, "not looked for: the model does not read"),
        ({"vector_pool": None, "vector_arm": "model-loading"}, "not looked for: the model is still loading"),
        ({"vector_pool": None, "vector_arm": "brand-new"}, "not looked for: brand-new"),
        ({"keyword_pool": None, "tier": None}, "words    not looked for: mode vector"),
    ],
)
def test_an_arm_that_did_not_run_says_why(made, said):
    assert said in page(made=made)


def test_wide_and_long_terms_keep_the_table_straight():
    words = explanation()["keyword"] | {
        "terms": [term("東京都", prefix=True), term("x" * 80), term("a\x1b[2J")]
    }
    rows = [line for line in page(keyword=words).splitlines() if re.search(r"4\.00", line)]
    assert [line.index("4.00") + line.count("東京都") * 3 for line in rows] == [rows[1].index("4.00")] * 3
    assert "x" * 23 + "…" in rows[1]
    assert "\x1b" not in page(keyword=words)


def test_folded_copies_are_named_below_a_hit():
    places = [
        {"path": "notes/b.md", "start_line": 3, "end_line": 9},
        {"path": "c.md", "start_line": 1, "end_line": 1},
    ]
    shown = hits.people(found(hit(folded=places)), query="x", style=PageStyle(CWD))
    assert shown.endswith("    also in: b.md:3-9, /home/ada/work/c.md:1\n")


def test_what_is_superseded_names_what_holds_in_its_place():
    shown = hits.people(found(hit(superseded_by=["notes/b.md", "c.md"])), query="x", style=PageStyle(CWD))
    assert shown.endswith("    superseded by b.md, /home/ada/work/c.md\n")
    assert "newer    takes the place of a.md, which it supersedes" in page(ahead_of="a.md")
    assert "older    ranked below what supersedes it: b.md" in page(superseded_by=["b.md"])


def test_no_good_match_is_said_where_there_are_hits():
    assert caveats.notes(found(hit(), confidence="none")) == "no good match: these are only the closest hits"
    assert caveats.notes({"sources": [{"score": 0.2}], "confidence": "none"}).startswith("no good match")
    assert caveats.notes({"sources": [{"score": None}], "confidence": "none"}) is None, "the core alone"
    assert caveats.notes(found(hit(), confidence="weak")) == "weak match"
    assert caveats.notes(found(hit(), confidence="weak"), with_weak=False) is None, "on a terminal"
    assert caveats.notes({"sources": [{"score": None}], "confidence": "weak"}) is None, "the core alone"
    assert caveats.notes(found(confidence="weak")) is None
    assert caveats.notes(found(confidence="none")) is None


def test_a_verdict_names_its_note_as_it_is_seen_from_here():
    verdict = WHY | {
        "path": "notes/a.md", "text": "notes/a.md is like old/notes/a.md and notes/a.mdx",
        "advice": "memctl get notes/a.md", "facts": {},
    }  # fmt: skip
    shown = why_page(verdict, cwd=CWD, colour=False)
    assert shown == "outranked: a.md is like old/notes/a.md and notes/a.mdx\nmemctl get a.md\n"
    outside = verdict | {"path": "/srv/a.md", "text": "/srv/a.md is outside", "advice": ""}
    assert why_page(outside, cwd="/srv", colour=False) == "outranked: /srv/a.md is outside\n"


def test_on_a_terminal_the_hits_below_the_first_gap_are_faint():
    scores = (0.5, 0.45, 0.3, 0.29)
    answer = found(*(hit(path=f"{at}.md", score=score) for at, score in enumerate(scores)), confidence="weak")
    shown = hits.people(answer, query="x", style=PageStyle(CWD, colour=True, columns=80)).splitlines()
    at = next(at for at, line in enumerate(shown) if "the rest is less likely" in line)
    assert sum("1.md" in line for line in shown[:at]) == 1
    assert all(line.startswith("\x1b[2m") for line in shown[at + 1 : -1])
    assert not any("\x1b[2m2" in line for line in shown[:at])
    plain = hits.people(answer, query="x", style=PageStyle(CWD))
    assert "less likely" not in plain
    assert "weak" not in plain


def test_a_later_statement_is_pointed_to():
    later = {"path": "notes/b.md", "line": 7, "date": "2026-05-01"}
    shown = hits.people(found(hit(later=later)), query="x", style=PageStyle(CWD))
    assert shown.endswith("    later: b.md:7, 2026-05-01\n")


def test_a_verdict_is_a_sentence_what_to_do_and_the_scores():
    shown = why_page(WHY, cwd=CWD, colour=False)
    assert shown.startswith(
        "outranked: /home/ada/work/a.md:1-2 would be hit 23, and the limit is 10\n"
        "memctl search --limit 23\n\n    score "
    )
    assert "    has      breast\n    lacks    gene, risk\n" in shown
    assert "\x1b" not in shown
    assert "\x1b[1moutranked" in why_page(WHY, cwd=CWD, colour=True)


def test_a_verdict_without_scores_is_two_lines():
    bare = WHY | {"stage": "missing", "text": "\x1b[2J.md\n does not exist", "facts": {"close": []}}
    shown = why_page(bare, cwd=CWD, colour=False)
    assert shown.count("\n") == 2
    assert "\x1b" not in shown


def test_a_page_of_lacking_words_is_cut():
    many = WHY | {"facts": {**WHY["facts"], "lacks": [f"w{number}" for number in range(50)]}}
    assert "w19 and 30 more" in why_page(many, cwd=CWD, colour=False)


def test_of_a_file_that_says_the_same_nothing_more_is_shown():
    assert "in its file" not in page(vector=explanation()["vector"] | {"source_cosine": 0.55})


def test_search_asks_for_the_explanation_only_when_told_to(peer, capsys):
    answer = found(hit(explanation=explanation()), explanation=MADE)
    daemon = peer(search=answer)
    assert main(["search", "--explain", "--json", "x"]) == exits.OK
    assert json.loads(capsys.readouterr().out) == answer
    assert main(["search", "x"]) == exits.OK
    assert [params.get("explain") for _, params in daemon.asked] == [True, None]


@pytest.mark.parametrize("form", ["--vimgrep", "--files"])
def test_a_list_of_places_has_no_room_for_explanations(peer, capsys, form):
    assert main(["search", "--explain", form, "x"]) == exits.USAGE
    assert "--json" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["--json", "--jsonl", "--vimgrep", "--files", "--color=never"])
def test_no_good_match_is_no_hit(peer, capsys, form):
    peer(search=found(hit(), confidence="none"))
    assert main(["search", form, "x"]) == exits.NONE
    out, err = capsys.readouterr()
    if form == "--json":
        answer = json.loads(out)
        assert (answer["hits"], answer["confidence"]) == ([], "none")
    else:
        assert out == ""
    if form not in {"--json", "--jsonl"}:
        assert err == "memctl: no good match (--nearest shows the closest hits)\n"


@pytest.mark.parametrize("form", ["--json", "--jsonl", "--vimgrep", "--files", "--color=never"])
def test_the_nearest_are_shown_to_who_asks_for_them(peer, capsys, form):
    peer(search=found(hit(), confidence="none"))
    assert main(["search", "--nearest", form, "x"]) == exits.OK
    out, err = capsys.readouterr()
    assert "genetics.md" in out
    assert "no good match" not in out
    assert err == ("" if form == "--json" else "memctl: no good match: these are only the closest hits\n")


def test_recall_of_what_nothing_is_known_about_prints_nothing(peer, capsys):
    nothing = found(confidence="none") | {"text": "", "tokens": 0, "sources": [], "omitted": []}
    daemon = peer(recall=nothing)
    assert main(["recall", "x"]) == exits.NONE
    assert capsys.readouterr() == ("", "memctl: no good match (--nearest shows the closest hits)\n")
    assert daemon.asked[-1][1]["nearest"] is False


def test_recall_prints_what_is_always_known_where_nothing_matches(peer, capsys):
    nothing = found(confidence="none") | {"tokens": 1, "omitted": []}
    peer(recall=nothing | {"text": "Tea.", "sources": [{"score": None}]})
    assert main(["recall", "x"]) == exits.NONE
    assert capsys.readouterr().out == "Tea.\n"


def test_recall_prints_the_nearest_where_that_is_asked_for(peer, capsys):
    nearest = {"text": "No good match: …", "tokens": 5, "sources": [{"score": 0.1}], "omitted": []}
    daemon = peer(recall=found(confidence="none") | nearest)
    assert main(["recall", "--nearest", "x"]) == exits.OK
    assert capsys.readouterr().out == "No good match: …\n"
    assert "nearest" not in daemon.asked[-1][1]


def test_what_is_said_of_the_hits_comes_below_them_also_in_one_file(peer, monkeypatch):
    """As in `memctl search x > out 2>&1`."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    peer(search=found(hit(), confidence="none"))
    command = [sys.executable, "-m", "memctl", "search", "--nearest", "x"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    assert done.stdout.index("Breast cancer risk rises") < done.stdout.index("memctl: no good match")


@pytest.mark.parametrize(("stage", "code"), [("returned", exits.OK), ("outranked", exits.NONE)])
def test_the_exit_code_of_why_says_whether_it_is_a_hit(peer, stage, code):
    peer(why=WHY | {"stage": stage})
    assert main(["why", "a.md", "x"]) == code


def test_why_sends_path_line_and_filters(root, peer, capsys):
    """The glob of --path has another name there, because `path` is the note."""
    (root / "a.md").write_text("x")
    daemon = peer(why=WHY)
    main(["why", "--path", "b/**", "-n", "5", "a.md:3", "some", "words", "--json"])
    sent = daemon.asked[0][1]
    assert (sent["path"], sent["line"], sent["query"], sent["glob"], sent["limit"]) == (
        "a.md", 3, "some words", ["b/**"], 5,
    )  # fmt: skip
    assert json.loads(capsys.readouterr().out) == WHY
    main(["why", "a.md", "--", "-x"])
    assert daemon.asked[1][1]["query"] == "-x"
    assert "line" not in daemon.asked[1][1]


def test_why_names_what_is_not_there_as_it_is_seen_from_here(root, peer, monkeypatch):
    daemon = peer(why=WHY)
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    main(["why", "gone.md", "x"])
    main(["why", "../../gone.md", "x"])
    assert [params["path"] for _, params in daemon.asked] == ["sub/gone.md", f"{root.parent}/gone.md"]


@pytest.mark.parametrize("argv", [["why"], ["why", "a.md"], ["why", "a.md", " "], ["why", "a.md:0", "x"]])
def test_why_without_note_query_or_line_is_wrong_usage(root, capsys, argv):
    assert main(argv) == exits.USAGE


def test_most_searches_load_no_renderer_of_explanations(peer, capsys):
    assert "explained" not in vars(search)
    assert "explained" not in vars(hits)


def test_what_was_searched_for_beside_a_misspelled_word_is_said_and_marked():
    answer = found(hit(), corrected={"breats": "breast", "gnee": "gene"})
    assert caveats.notes(answer) == "also searched for breast (breats), gene (gnee)"
    assert caveats.notes(found(hit(), corrected={})) is None
    told = hits.people(answer | {"explanation": MADE}, query="breats", style=PageStyle("/home/ada"))
    assert re.search(r"also for +breast \(breats\), gene \(gnee\)", told)
    page = hits.people(answer, query="breats", style=PageStyle("/home/ada", colour=True))
    assert f"\x1b[{MATCH}mBreast\x1b[0m" in page

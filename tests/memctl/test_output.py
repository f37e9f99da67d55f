"""An answer reads well, and does nothing to the terminal."""

import json
import re

import pytest
from sample_answers import found, hit, known, status

from memctl import __version__
from memctl.exits import CommandError
from memctl.output import caveats, hits
from memctl.output import status as pages
from memctl.output.hits import form_of
from memctl.output.marker import pattern_of
from memctl.output.page import drawn
from memctl.relative_path import shown
from memctl.text import any_text, one_line, safe, to_json, width_of

CWD = "/home/ada/work/notes"
ELSEWHERE = "/srv"


def page(*found_hits, query="brca1", cwd=CWD, **style):
    return hits.people(found(*found_hits), query=query, style=hits.PageStyle(cwd, **style))


def marked(query, text):
    """Return the words of *text* that are marked for *query*."""
    pattern = pattern_of(query)
    return pattern.findall(text) if pattern else []


def test_a_hit_shows_where_it_is_how_good_and_what_it_says():
    assert page(hit()) == (
        " 1  Genetics > BRCA1 mutation analysis  genetics.md:13  0.83  written 2026-05-01\n"
        "    The BRCA1 gene is a tumour suppressor.\n"
        "    Breast cancer risk rises.\n"
    )


def test_a_hit_of_one_line_without_heading_date_or_title_shows_what_there_is():
    assert page(hit(heading="", title="", date=None)).startswith(" 1  genetics.md:13  0.83\n    The ")


def test_a_heading_is_not_shown_twice():
    snippet = "## B c ##\n\ntext\n### D\n# text of B c"
    shown = page(hit(title="A", heading="A > B c", snippet=snippet), lines=9)
    assert shown.startswith(" 1  A > B c  ")
    assert shown.splitlines()[1:] == ["    text", "    ### D", "    # text of B c"]


def test_a_match_in_the_heading_shows_lines_of_its_section():
    snippet = "## B c\n\ntext\n\n## D of BRCA1\n\nBRCA1"
    shown = page(hit(title="A", heading="A > B c", snippet=snippet, match_text="## B c"), lines=9)
    assert shown.splitlines()[1:] == ["    text"]


def test_a_heading_that_is_not_below_the_title_stands_behind_it():
    """As "Notes" in a file that is called by its name."""
    assert page(hit(title="weekly review", heading="Notes")).startswith(" 1  weekly review > Notes  ")


def test_hits_are_numbered_and_eight_of_them_fit_on_a_screen():
    shown = page(*[hit()] * 8).splitlines()
    assert [line[:3] for line in shown[::3]] == [f" {number} " for number in range(1, 9)]
    assert len(shown) == 24


def test_hits_of_one_file_stand_together_below_its_path():
    later = hit(match_line=90, score=0.4, heading="Genetics > Later")
    places = [hit(), hit(path="b.md", title="B", heading="B"), later]
    places[1]["date"] = "2026-05-02"
    assert [line for line in page(*places).splitlines() if line[:2].strip()] == [
        " 1  Genetics > BRCA1 mutation analysis  genetics.md:13  0.83  written 2026-05-01",
        " 2  Genetics > Later  …:90  0.40",
        " 3  B  /home/ada/work/b.md:13  0.83  written 2026-05-02",
    ]
    roots = ("/srv/a", "/srv/b", "/srv/a")
    shown = page(*(hit(workspace=root, heading="", title="") for root in roots), cwd="//")
    assert [line[:8].rstrip() for line in shown.splitlines() if line[:2].strip()] == [
        " 1  /srv", " 2  …:13", " 3  /srv",
    ]  # fmt: skip
    assert shown.count("/srv/a") == 1


def test_a_date_that_all_files_have_is_said_once():
    shown = page(hit(), hit(path="b.md")).splitlines()
    assert [line for line in shown if "2026" in line] == [shown[-1]] == ["    all written 2026-05-01"]


@pytest.mark.parametrize("columns", [80, 60, 50, 30])
def test_a_header_never_wraps(columns):
    long = f"{'programming-languages/' * 4}why-we-chose-a-queue.md"
    for path in ("a.md", "programming/sqlite-wal.md", "notes/a-name-of-some-length/of-a-note.md", long):
        place = f"{path.rpartition('/')[2][-8:]}:13  0.83"
        for heading in ("", "Genetics > BRCA1", "Genetics > BRCA1 and what it is", "H " * 60):
            shown = page(hit(path=path, heading=heading, title=""), cwd="/home/ada/work", columns=columns)
            header = shown.partition("The BRCA1")[0].rstrip()
            assert all(len(line) <= columns for line in header.splitlines())
            assert place in header
            assert "written 2026-05-01" in header or "written" not in header
            assert heading in header or len(heading) > columns - 4
            assert header.splitlines()[-1].lstrip(" 1").startswith((path[:4], heading[:4] or path[:4]))
    header = page(hit(path=long, title="T", heading="T"), cwd="/home/ada/work", columns=60).splitlines()[0]
    assert header == " 1  T  programming-languages/…y-we-chose-a-queue.md:13  0.83"
    wide = page(hit(path="会" * 40 + ".md", heading="", title=""), cwd="/home/ada/work", columns=50)
    assert wide.splitlines()[0] == f" 1  {'会' * 6}…{'会' * 10}.md:13  0.83"


def test_no_hits_print_nothing_on_stdout():
    empty = found()
    assert (page(), hits.vimgrep(empty, cwd=CWD), hits.files(empty, cwd=CWD), hits.json_lines(empty)) == (
        "",
    ) * 4


def test_the_lines_with_the_words_are_those_that_are_shown():
    long = hit(snippet="\n\n".join([*(f"line {n}" for n in range(20)), "of BRCA1", "and more", "end"]))
    assert page(long).splitlines()[1:] == ["    of BRCA1", "    and more"]
    assert page(long, lines=3).splitlines()[1:] == ["    of BRCA1", "    and more", "    end"]
    assert page(hit(snippet="a\nb\nc"), query="other").splitlines()[1:] == ["    a", "    b"]
    assert page(long, lines=0).splitlines() == page(long).splitlines()[:1]


def test_a_paragraph_on_one_line_takes_two_rows_of_a_screen():
    long = "word " * 60 + "BRCA1 " + "tail " * 60
    shown = page(hit(snippet=long), columns=60).splitlines()
    assert [len(row) <= 60 for row in shown] == [True] * 3
    assert [row.endswith("…") for row in shown[1:]] == [False, True]
    assert "BRCA1" in shown[1]
    wide = page(hit(snippet="会" * 300, heading="T"), query="会", columns=50).splitlines()[1:]
    assert wide == ["    " + "会" * 23, "    " + "会" * 22 + "…"]


def test_fences_are_rendered():
    code = hit(snippet="```sh\nbrca1 --run\n```\nafter")
    assert page(code).splitlines()[1:] == ["    brca1 --run", "    after"]
    assert "\x1b[36m --run\x1b[0m" in page(code, colour=True)


def test_colours_mark_the_words_that_were_asked_for():
    shown = page(hit(), colour=True)
    assert "\x1b[1;31mBRCA1\x1b[0m mutation" in shown
    assert "\x1b[1;31mBRCA1\x1b[0m gene" in shown
    assert len(re.findall(r"\x1b\[1[;m]", shown)) == shown.count("\x1b[1;31mBRCA1")


def test_without_colours_there_is_no_escape_sequence():
    hostile = hit(path="a\x1b[2J.md", snippet="\x1b]0;owned\x07text\x9b31m", heading="\x1b[1mx")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", page(hostile))


def test_a_notes_own_escapes_are_shown_not_obeyed_with_colours_too():
    hostile = page(hit(snippet="\x1b[2J\x1b]52;c;cm0=\x07 brca1"), colour=True)
    assert re.findall("\x1b[^m]*m", hostile) == re.findall(r"\x1b\[[0-9;]+m", hostile)
    assert "␛[2J␛]52;c;cm0=␇" in hostile


def test_a_path_is_a_link_to_its_file_when_asked_for():
    for named, target in [
        ("file", "file:///home/ada/work/a%20%C3%A9.md"),
        ("vscode", "vscode://file/home/ada/work/a%20%C3%A9.md:13"),
        ("x://o?f={path}&l={line}", "x://o?f=/home/ada/work/a%20%C3%A9.md&l=13"),
    ]:
        shown = page(hit(path="a é.md"), colour=True, link=form_of(named))
        assert f"\x1b]8;;{target}\x1b\\" in shown


@pytest.mark.parametrize("owner", ["ada", "/home/ada"])
def test_what_comes_from_a_teams_store_is_no_link(owner):
    for root in ({}, {"root": "/home/ada/work"}):
        team = {"owner": owner, "machine": "laptop", "workspace": "n", **root}
        assert "\x1b]8;;" not in page(hit(path="../../.ssh/id", team=team), colour=True, link=form_of("file"))


def test_a_form_of_links_that_is_none_is_refused():
    with pytest.raises(CommandError, match="one of none, file, vscode"):
        form_of("emacs")


@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("BRCA1 gene", "the brca1 Genes and a gene", ["brca1", "gene"]),
        ("gene -draft path:x.md tag:y", "gene draft path tag", ["gene"]), ("設計", "APIの設計書", ["設計"]),
        ("東京都庁", "東京に行く", ["東京"]), ("API", "API設計 APIs", ["API"]),
        ("c++ (a|b)*", "c++ a b", []), ("", "anything", []), ("Café", "café CAFÉ", ["café", "CAFÉ"]),
    ],
)  # fmt: skip
def test_marked_words_are_the_querys_words(query, text, words):
    assert marked(query, text) == words


def test_function_words_are_marked_only_in_quotes_and_where_nothing_else_is_asked():
    assert marked("where is the heron", "The heron is where it is") == ["heron"]
    assert marked('"the heron" is', "The heron is") == ["The", "heron"]
    assert marked("to be or not", "to be") == ["to", "be"]


def test_a_page_long_query_is_no_trouble():
    """A query of a megabyte still makes a pattern, of a bounded number of words."""
    assert pattern_of(" ".join(f"word{n}" for n in range(100_000))).pattern.count("|") < 100


def test_vimgrep_lines_are_path_line_column_text():
    assert hits.vimgrep(found(hit()), cwd=CWD) == "genetics.md:13:5:The BRCA1 gene is a tumour suppressor.\n"


def test_vimgrep_names_files_outside_of_the_current_folder_absolutely():
    assert hits.vimgrep(found(hit()), cwd=ELSEWHERE).startswith("/home/ada/work/notes/genetics.md:13:5:")


def test_a_folder_that_only_starts_alike_is_not_the_current_folder():
    assert shown("/home/ada/work", "a.md", "/home/ada/wor") == "/home/ada/work/a.md"


def test_from_the_root_folder_paths_are_relative_to_it():
    """The current folder "/" needs no second slash."""
    assert shown("/home/ada/work", "a.md", "/") == "home/ada/work/a.md"


def test_one_hit_is_one_vimgrep_line():
    hostile = hit(match_text="one\ntwo\u2028three\x85four\rfive\r\n")
    assert hits.vimgrep(found(hostile), cwd=ELSEWHERE).splitlines() == [
        "/home/ada/work/notes/genetics.md:13:5:one␊two three\ufffdfour␍five"
    ]


@pytest.mark.parametrize(
    ("name", "vimgrep", "files"),
    [
        *(("a:1.md", False, True), ("a\nb.md", False, False), ("a\tb.md", False, False)),
        *(("\x1b[31m.md", False, False), ("\u202ea.md", False, False), ("a b.md", True, True)),
    ],
)
def test_a_name_that_a_line_cannot_hold_is_left_out_and_counted(name, vimgrep, files):
    """What is listed can be opened: a colon would end the name of a quickfix entry too early."""
    answer = found(hit(path=name), hit(path=name, start_line=99), hit())
    for is_listed, page, colons in (
        (vimgrep, hits.vimgrep(answer, cwd=CWD), False),
        (files, hits.files(answer, cwd=CWD), True),
    ):
        assert page.endswith("\n")
        assert (f"{name}" in page) is is_listed
        said = hits.unnamed(answer, cwd=CWD, colons=colons)
        assert said is None if is_listed else said.startswith("1 source left out")
    raw = hits.files0(answer, cwd=ELSEWHERE).split(b"\0")
    workspace = found()["workspace"]
    assert raw == [f"{workspace}/{name}".encode(), f"{workspace}/{hit()['path']}".encode(), b""]


def test_a_hit_of_the_vector_arm_alone_stands_at_its_first_line():
    alone = hit(match_line=None, match_column=None, match_text=None, snippet="\nFirst.\nSecond.")
    assert hits.vimgrep(found(alone), cwd=CWD) == "genetics.md:12:1:First.\n"


def test_files_are_named_once_best_first():
    answer = found(hit(), hit(path="b.md"), hit(start_line=40))
    assert hits.files(answer, cwd="/home/ada/work") == "notes/genetics.md\nb.md\n"


def test_json_lines_are_hits_with_their_workspace():
    answer = found(hit(), hit(id=8))
    lines = hits.json_lines(answer).splitlines()
    of = {"workspace": answer["workspace"]}
    assert [json.loads(line) for line in lines] == [hit() | of, hit(id=8) | of]


def test_json_is_the_answer():
    answer = found(hit(snippet="日本語 \x1b \x9b \u202e \u2028 \x7f 🎉 \\u0041"))
    assert json.loads(to_json(answer)) == answer


def test_json_does_nothing_to_a_terminal_and_is_well_formed():
    text = to_json({"snippet": "a\x1b\x9b\u202e\u2028\ud800\n日"})
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u202e\ud800]", text)
    assert "\\ud800" not in text
    assert "日" in text


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({}, None),
        (
            {"mode": "keyword", "degraded": ["model-loading"]},
            "keyword only: model-loading (the model is still loading)",
        ),
        ({"degraded": ["brand-new"]}, "degraded: brand-new"),
        ({"index": {"pending_files": 1}}, "1 file still to be read"),
        ({"degraded": ["x"], "index": {"pending_files": 2}}, "degraded: x; 2 files still to be read"),
        ({"index": {"pending_vectors": 2}}, "2 chunks found by words only until embedded"),
        ({"mode": "keyword", "index": {"pending_vectors": 2}}, None),
        (
            {"index": {"pending_vectors": 66, "embedded": 0.34, "left_s": {"vectors": 118.0}}},
            "meaning: 34 % of the notes, about 2 min left",
        ),
        (
            {"index": {"pending_vectors": 66, "embedded": 0.0, "left_s": {"vectors": None}}},
            "meaning: 0 % of the notes",
        ),
        (
            {"index": {"pending_vectors": 1, "embedded": 0.998, "left_s": {"vectors": 1.0}}},
            "1 chunk found by words only until embedded",
        ),
    ],
)
def test_an_answer_that_could_be_better_says_so(changes, note):
    assert caveats.notes(found(**changes)) == note


def test_what_there_is_without_the_minus_is_named_as_seen_from_here():
    best = {"path": "notes/a.md", "start_line": 3, "end_line": 4}
    answer = found(without=["rm rf", "tmp"], without_minus={"hits": 2, "best": best})
    root = answer["workspace"]
    told = 'without: "rm rf", tmp (no hits are left; without the minus the query finds 2 hits, the best at'
    assert caveats.notes(answer) == f"{told} notes/a.md:3)"
    assert caveats.notes(answer, cwd=f"{root}/notes") == f"{told} a.md:3)"
    assert caveats.notes(answer, cwd="/home") == f"{told} {root.removeprefix('/home/')}/notes/a.md:3)"


@pytest.mark.parametrize(
    ("left_s", "said"),
    [(0.3, "5 s"), (13, "15 s"), (88, "90 s"), (118, "2 min"), (3000, "50 min"), (7000, "2 h")],
)
def test_an_estimate_is_as_coarse_as_it_is_sure(left_s, said):
    assert caveats.about(left_s) == said


@pytest.mark.parametrize(
    ("changes", "whole"),
    [
        ({}, True),
        ({"degraded": ["model-loading"]}, False),
        ({"synced": False}, False),
        ({"synced": True}, True),
        ({"index": {"first": True}}, False),
        ({"index": {"first": True}, "mode": "keyword"}, True),
        ({"index": {"first": True, "first_words": True}, "mode": "keyword"}, False),
    ],
)
def test_whether_all_could_be_searched_is_known(changes, whole):
    """Else no hits do not mean that there are none."""
    assert caveats.is_whole(found(**changes)) is whole


def test_bytes_that_are_no_text_become_replacement_characters():
    raw = b"caf\xe9 \xff".decode("utf-8", "surrogateescape")
    assert any_text(raw) == "caf\ufffd \ufffd"


def test_safe_text_keeps_lines_tabs_and_every_script():
    assert safe("a\tb\r\nc\n日本語 🎉 é\x00") == "a\tb\nc\n日本語 🎉 é␀"
    assert one_line("a\tb\r\n") == "a b"


def page_of(answer, **options):
    return drawn(pages.status(answer), **options)


def test_status_page_names_all_that_matters():
    text = page_of(
        status(
            known(
                state="busy", lag_ms=61_000, pending_files=3, pending_vectors=1,
                skipped=[{"path": "a\n.md", "reason": "too large"}], skipped_total=9,
                degraded=["model-loading"], errors=["config.toml: no key 'x'"],
            )
        )
    )  # fmt: skip
    for part in (
        f"memd {__version__}",
        "4711, up 1 h 1 min",
        "105 MB",
        "ready, onnx, 0123456789abcdef",
        "/home/ada/work",
        "busy, oldest change not searched yet: 1 min 1 s ago",
        "1,864 sources, 9,001 chunks, 9,000 vectors",
        "3 files, 1 vector",
        "not complete yet",
        "30 MB",
        "a␊.md (too large)",
        "8 more: memctl status --json",
        "model-loading",
        "config.toml: no key 'x'",
    ):
        assert part in text


def test_status_says_which_share_is_found_by_meaning_and_how_long_the_rest_takes():
    waiting = known(pending=66, pending_vectors=66, embedded=0.34, left_s={"words": None, "vectors": 118.0})
    told = "0 files, 66 vectors; meaning: 34 % of the notes, about 2 min left"
    assert told in page_of(status(waiting))
    few = known(pending_files=1, pending_vectors=2, embedded=0.998)
    assert "1 file, 2 vectors; 2 chunks found by words only until embedded" in page_of(status(few))


def test_status_without_workspaces_says_how_to_make_one():
    assert "memctl init DIR" in page_of(status())
    assert "memctl init DIR" in page_of(status(), width=80)


def test_a_workspace_that_could_not_be_opened_shows_its_error_alone():
    """No counts that nobody took; the list says the state."""
    broken = {"root": "/a", "state": "error", "errors": ["config.toml: no key 'x'"]}
    assert page_of(status(broken)).endswith(
        "/a\n  state       error\n  error       config.toml: no key 'x'\n"
    )
    assert "error" in listed({"workspaces": [broken]})


@pytest.mark.parametrize("amount", [0, 1, 2])
def test_a_terminal_shows_the_page_that_a_pipe_gets(amount):
    skipped = [{"path": "[red]x.md", "reason": "binary"}]
    answer = status(*[known(root=f"/{number}", skipped=skipped) for number in range(amount)])
    drawn = page_of(answer, width=200, colour=True)
    assert re.sub("\x1b\\[[0-9;]*m", "", drawn) == page_of(answer) != drawn


def test_the_page_of_several_workspaces_has_every_fact_of_each():
    both = [known(root="/a", last_scan=0.0, provider="onnx"), known(root="/b", sources=7, size_bytes=5000)]
    page = page_of(status(*both))
    rows = [line.split() for line in page.splitlines()]
    assert ["/a", "ready", "1,864", "9,001", "9,000", "0", "onnx"] in rows
    assert ["/b", "ready", "7", "9,001", "9,000", "0"] in rows
    for one in both:
        for label, value in pages.workspace(one).rows:
            assert label.text.strip() in {"state", "content", "pending"} or value.text in page


def test_the_page_fits_the_terminal():
    root = "/home/ada/" + "語" * 50
    answer = status(known(root=root, errors=["ä" * 100]), known())
    for width in (20, 60, 100):
        drawn = page_of(answer, width=width)
        assert max(map(width_of, drawn.splitlines())) <= width
        assert drawn.count("語") == 100
        assert drawn.count("ä") == 100
        assert ("workspace " in drawn) == (width > 60)


@pytest.mark.parametrize("width", [None, 80])
def test_health_names_each_check_and_the_verdict(width):
    checks = [
        {"name": "search", "ok": True, "detail": "1 hit"},
        {"name": "model", "ok": False, "detail": "gone"},
    ]
    text = drawn(pages.health({"ok": False, "checks": checks}), width=width)
    assert all(part in text for part in ("search", "1 hit", "model", "gone", "not healthy"))


def listed(answer):
    return drawn(pages.workspaces(answer), width=80)


@pytest.mark.parametrize("draw", [listed, lambda answer: "\n".join(pages.workspace_lines(answer))])
def test_workspaces_are_listed_with_their_state(draw):
    text = draw({"workspaces": [{"root": "/a", "state": "ready", "sources": 1, "chunks": 2000}]})
    assert all(part in text for part in ("/a", "ready", "1", "2,000"))
    assert "memctl init DIR" in draw({"workspaces": []})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (90_000, "1 d 1 h")],
)
def test_durations_have_two_units(seconds, text):
    assert pages.duration(seconds) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(None, "0 B"), (999, "999 B"), (1000, "1 kB"), (30_400_000, "30 MB"), (5e9, "5.0 GB")],
)
def test_sizes_are_in_si_units(amount, text):
    assert pages.size(amount) == text


def test_a_moment_may_be_absent_text_or_seconds():
    assert pages.moment(None) == "never"
    assert pages.moment("2026-05-01T10:00:00Z") == "2026-05-01T10:00:00Z"
    assert re.fullmatch(r"2026-05-2[78] \d\d:\d\d:\d\d", pages.moment(1_779_900_000.0))


@pytest.mark.parametrize("char", "\u061c\u200f\u2066\u3164\u1160\uffa0")
def test_what_reorders_a_line_or_stands_unseen_in_it_is_shown(char):
    """Marks of direction and fillers of Hangul, in text and in JSON, where an escape says the same."""
    assert safe(f"a{char}b") == "a\ufffdb"
    assert to_json({"a": char}) == f'{{"a": "\\u{ord(char):04x}"}}'

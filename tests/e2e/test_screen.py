"""What a person sees of a search on a screen of 24 rows: a real terminal (tmux), a real daemon."""

import re
import shutil
import stat
from pathlib import Path

import pytest
from test_readme import block


def test_the_best_hit_stands_on_the_first_rows_and_the_rest_is_a_key_away(screen):
    """A page that is longer than the screen goes through the pager, as git's do."""
    screen.type("clear; memctl search -n 20 --min-score 0 --nearest --lines 4 note")
    rows = screen.until(
        lambda rows: len(rows) > 1 and rows[0].startswith(" 1  ") and rows[-1].startswith(":")
    )
    screen.type("", "q")
    screen.until(lambda rows: rows and "ready>" in "".join(rows))
    assert ".md:" in "".join(rows[:3])


def test_a_short_page_needs_no_pager_and_its_hits_can_be_opened(screen):
    screen.type("clear; memctl search -n 3 breast cancer gene")
    rows = screen.until(lambda rows: any(row.startswith("ready>") for row in rows[1:]))
    first = rows[0].split()
    assert first[0] == "1"
    assert "research/brca1.md:1" in first
    screen.type("clear; memctl open; echo closed")
    screen.until(lambda rows: "closed" in rows)
    line, path = (screen.folder / "opened").read_text().split()
    assert line == "+1"
    assert path.endswith("/research/brca1.md")
    screen.type("clear; memctl open 4; echo exit $?")
    assert screen.until(lambda rows: "exit 2" in rows)[0].startswith("memctl: there is no hit 4")


def test_a_number_opens_the_hit_that_it_stands_at(workspace, terminal):
    """Also where the page has hits of one file together that another one ranks between."""
    filler = "words of no interest " * 60
    (workspace.root / "a.md").write_text(
        f"# Heron\n\nheron heron heron\n\n# Other\n\n{filler}\n\n# Third\n\n{filler} heron\n"
    )
    (workspace.root / "b.md").write_text("# Weir\n\nOn Monday a heron came by and stayed.\n")
    workspace.call("sync")
    ranked = workspace.call("search", query="heron", mode="keyword")["hits"]
    assert [hit["path"] for hit in ranked] == ["a.md", "b.md", "a.md"]
    screen = terminal(workspace.daemon, workspace.root)
    screen.type("clear; memctl search --mode keyword heron; echo done")
    rows = screen.until(lambda rows: "done" in rows)
    assert [row[:3] for row in rows if row[:2].strip().isdecimal()] == [" 1 ", " 2 ", " 3 "]
    for number, hit in zip((1, 2, 3), (ranked[0], ranked[2], ranked[1]), strict=True):
        screen.type(f"clear; memctl open {number}; echo exit {number}.$?")
        screen.until(lambda rows, last=f"exit {number}.0": last in rows)
        opened = (screen.folder / "opened").read_text()
        assert opened == f"+{hit['match_line']} {workspace.root}/{hit['path']}\n"


def test_what_is_kept_of_hits_is_their_places_for_this_user_alone(screen, sample):
    daemon, _ = sample
    screen.type("clear; memctl search -n 1 breast cancer gene; echo done")
    screen.until(lambda rows: "done" in rows)
    kept = list(Path(daemon.environment["XDG_RUNTIME_DIR"]).glob("memd/hits-*"))
    assert {stat.S_IMODE(one.stat().st_mode) for one in kept} == {0o600}
    assert "gene" not in "".join(one.read_text() for one in kept)


def test_another_terminal_has_hits_of_its_own(screen):
    screen.type("clear; memctl open; echo exit $?")
    assert "has not shown any hits" in screen.until(lambda rows: "exit 1" in rows)[0]


def test_a_pager_can_be_refused(screen):
    for typed in ("memctl search --no-pager", "MEMCTL_PAGER=cat memctl search"):
        screen.type(f"clear; {typed} -n 20 --min-score 0 --nearest --lines 4 note; echo done")
        screen.until(lambda rows: "done" in rows)


@pytest.mark.parametrize("named", ["less '", "/nowhere/less", "/", "/dev/null/less"])
def test_a_pager_that_is_none_is_no_reason_to_show_nothing(screen, named):
    searched = f'PAGER="{named}" memctl search -n 20 --min-score 0 --nearest note'
    screen.type(f"clear; {searched} 2> {screen.folder}/said; echo done $?")
    rows = screen.until(lambda rows: "done 0" in rows)
    assert any(re.match(r"\d\d  ", row) for row in rows), rows
    said = (screen.folder / "said").read_text()
    assert "Traceback" not in said
    assert ("memctl: PAGER=less ' is not a command line (No closing quotation)" in said) == (
        named == "less '"
    )


def test_the_readmes_fzf_recipe_searches_as_one_types_and_opens_the_place(screen):
    if shutil.which("fzf") is None:
        pytest.skip("fzf is not installed: apt-get install fzf")
    recipe = screen.folder / "recipe.bash"
    recipe.write_text(block("bash", "fzf --disabled"))
    screen.type(f". {recipe} && clear && mf breast cancer gene")
    screen.until(lambda rows: any("brca1.md:1:1:BRCA1" in row for row in rows))
    screen.type("", "C-u")
    screen.type("", *"vaccines")
    screen.until(lambda rows: any("> research/vaccines.md:1:" in row for row in rows))
    screen.type("", "C-u")
    screen.type("", *"brca1")
    screen.until(lambda rows: any("> research/brca1.md:1:" in row for row in rows))
    screen.type("", "Enter")
    screen.until(lambda rows: any(row.startswith("ready>") for row in rows))
    assert (screen.folder / "opened").read_text() == "+1 research/brca1.md\n"

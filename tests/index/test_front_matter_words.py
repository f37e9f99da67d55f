"""Front matter, titles and names of notes are found as the text is, and its days are the note's."""

import os
import time
from datetime import date, timedelta

import pytest

from memd.index.source_rows import place_of, searchable

HEADS = {
    "yaml.md": "---\nauthor: Jane Kestrelsson\nisbn: 978-3-16-148410-0\n"
    "list: [{of: sphygmomanometer}]\n---\nBody\n",
    "toml.md": '+++\ndescription = "All about theodolites"\n[who]\nby = ["Quillfeather"]\n+++\nBody\n',
    "json.md": '{"summary": "a zymurgy primer"}\n\nBody\n',
    "logseq.md": "type:: bookbinding\n\n- Body\n",
    "half.md": "---\ntitle: T\nQuoll wrote this\n# a Bilby\n---\nBody\n",
    "alone.md": "---\nplace: Xanadu\n---\n",
    "tagged.md": "---\ntags: [" + ", ".join(f"tag{n}" for n in range(90)) + "]\n---\nBody\n",
}
ASKED = {
    "Kestrelsson": "yaml.md", "978-3-16-148410-0": "yaml.md", '"Jane Kestrelsson"': "yaml.md",
    "sphygmomanometer": "yaml.md", "theodolites": "toml.md", "Quillfeather": "toml.md", "zymurgy": "json.md",
    "bookbinding": "logseq.md", "Xanadu": "alone.md", "Quoll Bilby": "half.md", "tag89": "tagged.md",
}  # fmt: skip


def test_any_value_is_found_by_its_words(notes):
    notes.save(HEADS)
    assert {asked: notes.found(asked, mode="keyword") for asked in ASKED} == {
        asked: [path] for asked, path in ASKED.items()
    }


def test_what_memd_writes_about_an_entry_is_no_text(notes):
    notes.save({"a.md": "---\nid: 0123456789abcdef\nsource:\n  origin: agent\nsha256: feed\n---\nBody\n"})
    assert notes.found("agent", mode="keyword") == []
    assert notes.found("0123456789abcdef", mode="keyword") == ["a.md"]


@pytest.mark.parametrize(
    ("path", "head", "day", "day_of"),
    [
        ("2023-02-14 A.md", "date: 2020-01-01", "2023-02-14", "name"),
        ("journals/2023_02_14.md", "", "2023-02-14", "name"),
        ("daily.journal.2023.02.14.md", "", "2023-02-14", "name"),
        ("20230214.md", "", "2023-02-14", "name"), ("202302141830 Weirs.md", "", "2023-02-14", "name"),
        ("2023-W07.md", "", "2023-02-13", "name"), ("2023-02 Review.md", "", "2023-02-01", "name"),
        ("February 14th, 2023.md", "", "2023-02-14", "name"), ("14 Feb 2023.md", "", "2023-02-14", "name"),
        ("Feb 2023.md", "", "2023-02-01", "name"), ("2023年2月14日.md", "", "2023-02-14", "name"),
        ("14. Februar 2023.md", "", "2023-02-14", "name"), ("Février 2023.md", "", "2023-02-01", "name"),
        ("вт, 14 февраля 2023.md", "", "2023-02-14", "name"), ("14_Feb_2023.md", "", "2023-02-14", "name"),
        ("2023-Q2 Review.md", "", "2023-04-01", "name"), ("Q2 2023.md", "", "2023-04-01", "name"),
        ("Feb-2023.md", "", "2023-02-01", "name"), ("2023-Feb-14.md", "", "2023-02-14", "name"),
        ("2023 February.md", "", "2023-02-01", "name"), ("2023-W07-2.md", "", "2023-02-14", "name"),
        ("KW7 2023.md", "", "2023-02-13", "name"), ("Week 7, 2023.md", "", "2023-02-13", "name"),
        ("Q2-2023.md", "", "2023-04-01", "name"),
        ("a.md", "date: le 14 février 2023", "2023-02-14", "date"),
        ("a.md", "date: 14\u00ba de fevereiro de 2023", "2023-02-14", "date"),
        ("a.md", "date: <2023-02-14 Tue>", "2023-02-14", "date"),
        ("14 Feb last year.md", "", "", "changed"), ("Summer 2023.md", "", "", "changed"),
        ("minutes-2023-02-14.md", "", "2023-02-14", "name"), ("call_2023_02_14.md", "", "2023-02-14", "name"),
        ("Call (14 Feb 2023).md", "", "2023-02-14", "name"), ("14-Feb-2023.md", "", "2023-02-14", "name"),
        ("call 2023-02-14.md", "date: 2020-01-01", "2020-01-01", "date"),
        ("v2023.02.14.md", "", "", "changed"),
        ("from 2023-02-14 to 2023-03-01.md", "", "", "changed"), ("Plan Q2 2023.md", "", "", "changed"),
        ("a.md", "date: 14 de febrero de 2023", "2023-02-14", "date"),
        ("a.md", "date: {modified: 2024-01-01, created: 2023-02-14}", "2023-02-14", "created"),
        ("daily/2023/02/14.md", "", "2023-02-14", "name"), ("2023/02/14 ideas.md", "", "", "changed"),
        ("14-02-2023.md", "", "2023-02-14", "name"), ("02-14-2023.md", "", "2023-02-14", "name"),
        ("02-02-2023.md", "", "2023-02-02", "name"), ("02-03-2023.md", "", "", "changed"),
        ("Market 14 2023.md", "", "", "changed"), ("2023-13.md", "", "", "changed"),
        ("2023-02-plan.md", "", "2023-02-01", "name"), ("Feb-14-2023.md", "", "2023-02-14", "name"),
        ("Tue-Feb-14-2023 plan.md", "", "2023-02-14", "name"), ("2023 02 14.md", "", "2023-02-14", "name"),
        ("terça-feira-14-fev.md", "", "", "changed"), ("week-7-2023.md", "", "2023-02-13", "name"),
        ("terça-feira-14-fevereiro-2023.md", "", "2023-02-14", "name"),
        ("call-feb-14-2023.md", "", "2023-02-14", "name"), ("mars 2023.md", "", "2023-03-01", "name"),
        ("1 mars 2023 rover.md", "", "2023-03-01", "name"), ("Mars 2023 rover.md", "", "", "changed"),
        ("Mart-2023-prices.md", "", "", "changed"), ("2023-W60.md", "", "", "changed"),
        ("a.md", "date created: Tuesday, February 14th 2023, 10:00:00 am", "2023-02-14", "created"),
        ("a.md", "date: Tue, 14 Feb 2023 10:00:00 GMT", "2023-02-14", "date"),
        ("a.md", "created: '[[February 14th, 2023]]'", "2023-02-14", "created"),
        ("a.md", "date: 02/14/2023", "2023-02-14", "date"), ("a.md", "date: 02/03/2023", "", "changed"),
        ("20231314.md", "", "", "changed"), ("2023021418.md", "", "", "changed"),
        ("a.md", "updated: 2024-01-01\ncreated: 2023-02-14", "2023-02-14", "created"),
        ("a.md", "created: 2024-01-01\ndate: 2023/2/14", "2023-02-14", "date"),
        ("a.md", "published: 2024-01-01\nday: '[[2023-02-14]]'", "2023-02-14", "day"),
        ("a.md", "lastmod: 2023-02-14T10:00:00Z", "2023-02-14", "lastmod"),
        ("a.md", "Published: 2023-02-14\nlastmod: 2024-01-01", "2023-02-14", "published"),
        ("a.md", "created: 1676376000000\nupdated: 1676376000000", "2023-02-14", "created"),
        ("a.md", "date: 1676376000", "2023-02-14", "date"),
        ("a.md", "date: soon\nupdated: 2023-02-14", "2023-02-14", "updated"),
        ("a.md", "Date-Created: 14.2.2023 10:00\nlast_modified_at: 2024-01-01", "2023-02-14", "created"),
        ("a.md", "lastModified: 2023-02-14", "2023-02-14", "updated"),
        ("a.md", "date: 20230214", "2023-02-14", "date"), ("a.md", "date: 202302", "", "changed"),
        ("a.md", "date: 31.02.2023", "", "changed"),
        ("a.md", "date: 2023", "", "changed"),
        ("a.md", "id: 0123456789abcdef\nsource: {origin: agent}\ncreated: 2023-01-01\nupdated: 2023-02-14",
         "2023-02-14", "updated"),
    ],
)  # fmt: skip
def test_the_day_of_a_note(notes, path, head, day, day_of):
    """At its name's beginning, else in front matter in a fixed order, else in its name, else of a change."""
    notes.save({path: f"---\n{head}\n---\nBody\n"})
    [hit] = notes.search("Body", mode="keyword").hits
    assert hit.source.day_of == day_of
    assert day_of == "changed" or hit.source.day == date.fromisoformat(day)


@pytest.mark.parametrize("day", ["1950-02-14", "2023-02-14", "2400-02-14"])
def test_a_change_in_another_century_is_of_its_day(notes, day):
    notes.write("a.md", "Body\n")
    at_s = (date.fromisoformat(day) - date(1970, 1, 1)) // timedelta(days=1) * 86_400 + 43_200
    os.utime(notes.root / "a.md", (at_s, at_s))
    if (notes.root / "a.md").stat().st_mtime != at_s:
        pytest.skip("the file system has no such time")
    notes.indexer.apply(["a.md"], budget_s=60)
    [hit] = notes.search("Body", mode="keyword").hits
    assert hit.source.day == date.fromisoformat(day)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("The [quick](https://example.com/some/page) fox jumps.", "quick fox jumps"),
        ("The [quick](<a b.md> 'a title') fox jumps.", "quick fox jumps"),
        ("See [[notes/deep|the quick]] fox.", "the quick fox"),
        ("The quick[^note] fox.", "the quick fox"),
        ("The [quick][1] fox.\n\n[1]: https://example.com", "the quick fox"),
        ("The [quick][] <b>brown</b><br>fox.", "the quick brown fox"),
        ("The quick [fox]() jumps.", "quick fox jumps"),
        ("grid[row][col] = 1", "grid[row][col]"),
        ("这是**重要**的事情", "重要的事情"),
        ("请看[重要](https://example.com)的说明", "看重要的说明"),
        ("The **quick** fox.", "the quick fox"),
    ],
)  # fmt: skip
def test_a_phrase_is_found_over_what_a_reader_does_not_see(notes, text, phrase):
    notes.save({"a.md": f"{text}\n", "b.md": "fox the quick\n"})
    assert notes.found(f'"{phrase}"', mode="keyword") == ["a.md"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("That is un**believ**able.", "unbelievable"), ("A foo<wbr>bar.", "foobar"),
        ("A pot of H<sub>2</sub>O and CO~2~.", "H2O"), ("hy&shy;phen", "hyphen"), ("**W**orld", "world"),
        ("re==mark==able", "remarkable"), ("That is un**believ**able.", "believ"),
        ("My to-do list.", "todo"), ("My to-do list.", "to-do"), ("Say --dry-run.", "dryrun"),
        ("---\nphone: +49 170 1234567\n---\nBob.", "01701234567"),
        ("E-Mails an Ann.", "emails"), ("Call `getHTTPResponseCode`.", '"http response code"'),
        ("The userID.", "user id"), ("At aa:bb:cc:dd:ee:0f.", "AABBCCDDEE0F"),
        ("<ruby>漢<rt>かん</rt>字<rt>じ</rt></ruby>を書く。", "漢字を書く"),
        ("<ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>へ。", "とうきょう"),
    ],
)  # fmt: skip
def test_a_word_is_found_whole_and_in_parts(notes, text, word):
    notes.save({"a.md": f"{text}\n", "b.md": "Other.\n"})
    assert notes.found(word, mode="keyword") == ["a.md"]


def test_the_target_of_a_link_is_found(notes):
    notes.save({"a.md": "The [quick](https://example.com/zymurgy(1)) fox and [[xanadu|it]].\n"})
    assert notes.found("zymurgy", mode="keyword") == ["a.md"]
    assert notes.found("xanadu", mode="keyword") == ["a.md"]


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("budget 2026.md", "# Notes\n\nText.\n", "budget 2026"),
        ("budget.md", "# Summary:\n\nText.\n", "budget"),
        ("reise.md", "# Notizen\n\nText.\n", "reise"),
        ("notes.md", "# Summary\n\nText.\n", "Summary"),
        ("budget.md", "# Notes on rivers\n\nText.\n", "Notes on rivers"),
        ("budget.md", "---\ntitle: Notes\n---\n# Rivers\n", "Notes"),
        ("budget.md", "Text.\n", "budget"),
    ],
)
def test_a_first_heading_that_says_nothing_is_no_title(notes, path, text, title):
    notes.save({path: text})
    assert [source.title for source in notes.index.snapshot.sources.values()] == [title]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("docker/restart_policy.md", ["docker", "restart policy"]),
        ("adr/0017-use-sqlite.md", ["adr", "use sqlite"]),
        ("7.5/Web.Tools/Get-Item.md", ["", "Web Tools", "Get Item"]),
        ("2024-02-29-trip to Rome.md", ["trip to Rome"]), ("journals/2023_02_14.md", ["journals", ""]),
        ("project.memd.plan.md", ["project memd plan"]), ("a/1071.md", ["", ""]),
        ("x/a3f9b2c.md", ["", ""]), ("日/木.md", ["日", "木"]),
        ("memory/archives/2025-01-02-hello.md", ["hello"]), ("-.md", [""]),
    ],
)  # fmt: skip
def test_names_are_words(path, place):
    assert place_of(path) == place


def test_what_only_the_name_says_is_found_by_its_meaning(notes):
    """The tests' model knows words alone; here no other note has them."""
    notes.save({"garden/copper-kettle.md": "Bought in May.\n", "b.md": "Text\n", "c.md": "# Weir\n\nText\n"})
    vector = notes.embedder.embed_query("garden > copper kettle")
    hits = notes.search("boiler", mode="vector", query_vec=vector, min_score=0.0).hits
    assert hits[0].source.path == "garden/copper-kettle.md"
    assert hits[0].candidate.vector_score > 0.5


@pytest.mark.parametrize("text", ["éaB", "1aB", "a-bC"])
def test_rows_of_parts_cost_a_bounded_time(text):
    """Each row of letters and digits is walked along once, whatever it is."""
    began = time.process_time()
    searchable(text * 20_000, "a.md", None)
    assert time.process_time() - began < 4

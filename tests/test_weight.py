"""The weight of the code: a ceiling on the lines of each package, and on the bytes of the kept runs.

Lines are what a reader pays. A commit that takes lines away lowers the ceiling; one that raises a ceiling
says here, beside the number, what the lines buy.
"""

import pytest

from tools.weight import lines, size_bytes

CEILINGS = {
    # Down by the team's search in Milvus. What went up bought: links and their methods, slow disks, any
    # shell, masked names, values of front matter, signs, rows of a query's words, limits that are tried,
    # an index of the masked text for agents, threads of each root, what is called like the query,
    # clients' files that are read without a wait, days that a question names, the newest statement and what a
    # later note changes, timelines, names with a meaning, diaries alone that fade, scripts word by word,
    # sidecars beside the writer, telephone numbers, files that git tracks, folders that cannot be written,
    # what a folder is, where a conversation begins, pointers below the hook's gate, stores of three more
    # tools, characters beside pairs, what an assistant said, the line that answers, lists of links in a
    # team's search, too, links with titles and brackets as written in a note, and
    # names of 20,000 notes in time, frequent words first in a pass of postings, clients that left before
    # they were accepted,
    # texts read for a heading only where all of its words are, an index of 2.5 times the notes' text, flipped
    # bits in the schema, filters named that no note meets, names passed over unread, plugins' days,
    # texts read for words in a row only where these words are neighbours, exports of any form, each told in
    # a branch of its own, days of notes as people write them, in each language, times that
    # are set after the text, entries wherever people have put their files, renamed exports,
    # underlined headings, days within names, files that are no text read once,
    # numbers by their digits, C# and C, words with markup in them, indexes deleted while open,
    # a day asked for alone, names with other signs between their words, comments passed over, words
    # joined with their numbers or apart,
    # names with an edit in a short word, fields above a number, days in names with signs between all of
    # their parts, links of GitHub and editors, entries by their digits, words with and without their hyphen,
    # names as in code by their words, numbers of cards and devices, exports renamed beside others,
    # days of sections.
    "memd": 42_778,
    # The language server (1,862), doctor, instructions and sessions of agents, timelines, what is related
    # and what links to a hit in find; clients of agents as of today, a hook that asks the running server, a
    # picker inside Neovim, an extension for VS Code, what was opened last, links that survive the move of a
    # folder with signs in its name, notes that were open before `memctl init`, no completion in code, notes
    # by each way to their file, a terminal that any stop leaves sane, names with signs of bash, params of LSP
    # checked before they are used, ignored signals, cures that apply, a link that stays, places in previews,
    # worktrees of agents, also beside the repository, a match in the heading.
    "memctl": 15_485,
    # Up by what a team's store must not be able to do (a server that lies), moves of notes against a model,
    # the real clients of agents with memd's plugin folder, each way to write a link in an editor, and a
    # check in less time: the model is read once, files that wait are run beside files that compute;
    # git's own list of what it tracks in the live games, a first index on a full disk, numbers out of bounds,
    # entries written in a pause, terminals that draw no bar, numbers as Lua writes them, a link that stays,
    # ignored signals on a full screen, tags at a TAB, requests of LSP from their own table, secrets by an
    # index.
    "tests": 57_324,
    # Up by known items, dated memories, the hybrid search against its better arm, the language server,
    # hooks in time, statements that change, prompts that nobody tuned on, and calls that
    # are right the first time.
    "benchmarks": 9_224,
}

RUNS_BYTES = 728_683  # of benchmarks/runs: the newest of each figure; up by known items, layouts of memories


@pytest.mark.parametrize(("package", "ceiling"), CEILINGS.items())
def test_a_package_is_not_heavier_than_its_ceiling(package, ceiling):
    assert 0 < lines(package) <= ceiling, f"lower the lines of {package}, or say in this file what they buy"


def test_the_kept_runs_are_few_and_compact():
    assert 0 < size_bytes("benchmarks/runs") <= RUNS_BYTES

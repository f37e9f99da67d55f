"""The Neovim plugin for its user: a real editor, a real daemon."""

import json
from pathlib import Path

import pytest

from memd.search.filters import FILTER_KEYS

# The commands


def test_hits_come_into_the_quickfix_list(house, editor):
    out = editor(
        house,
        """
        out.list = search('weir heron')
        out.shown = vim.bo.buftype
        local hit = out.list.items[1]
        out.path = vim.api.nvim_buf_get_name(hit.bufnr)
        out.hit_kept = vim.fn.has('nvim-0.10') == 0 or hit.user_data.path
        """,
    )
    [entry] = out["list"]["items"]
    assert out["path"] == f"{house[1]}/heron.md"
    line = "Über dem Fluß: a heron stands by the weir."
    assert (entry["lnum"], entry["valid"]) == (3, 1)
    assert entry["col"] == len(line.partition("heron")[0].encode()) + 1
    score, _, text = entry["text"].partition("  ")
    assert 0 < float(score) < 1
    assert text == line
    assert out["list"]["title"] == "memd: weir heron"
    assert out["shown"] == "quickfix"
    assert out["hit_kept"] in (True, "heron.md")


def test_a_bang_goes_to_the_best_hit(house, editor):
    out = editor(
        house,
        """
        search('heron', '!')
        out = {vim.api.nvim_buf_get_name(0), vim.fn.line('.'), vim.fn.expand('<cword>')}
        """,
    )
    assert out == [f"{house[1]}/heron.md", 3, "heron"]


@pytest.mark.parametrize(
    "query", ['heron | "the weir" -owl', "heron % # <cword> \\", "heron'; !rm", "白鷺 heron ü"]
)
def test_any_text_is_a_query(house, editor, query):
    out = editor(
        house,
        f"""
        vim.cmd('MemNearest ' .. {json.dumps(query, ensure_ascii=False)})
        eventually(function() return #list().items > 0 or #said > 0 end)
        out = list()
        """,
    )
    assert out["context"]["memd"]["query"] == query
    assert out["items"]


def test_no_hits_are_told_and_the_old_list_stays(house, editor):
    out = editor(
        house,
        """
        search('heron')
        vim.cmd('MemSearch xyzzyplugh')
        eventually(function() return #said > 0 end)
        out = {said = said, title = list().title}
        """,
    )
    assert out["said"][0]["text"].startswith("memd: no hits for xyzzyplugh")
    assert out["title"] == "memd: heron"


def test_a_recall_comes_into_a_scratch_buffer(house, editor):
    out = editor(
        house,
        """
        local function recall(query)
          vim.cmd('MemRecall ' .. query)
          eventually(function() return vim.fn.search(query, 'w') > 0 end)
        end
        recall('owl')
        recall('heron')
        out.name, out.kind, out.type = vim.fn.bufname(), vim.bo.buftype, vim.bo.filetype
        out.text = vim.api.nvim_buf_get_lines(0, 0, -1, false)
        vim.cmd('1') vim.fn.search('Source:') vim.cmd('normal! Wgf')
        out.opened = vim.api.nvim_buf_get_name(0)
        """,
        cwd="/",
        MEMD_WORKSPACE=house[1],
    )
    assert (out["name"], out["kind"], out["type"]) == ("memd://recall", "nofile", "markdown")
    assert any("Source: heron.md:1-3" in line for line in out["text"])
    assert not any("owl" in line for line in out["text"])
    assert out["opened"] == f"{house[1]}/heron.md"


def test_names_of_any_kind_are_opened(editor, new_workspace, daemon, tmp_path):
    names = ["two words", "a%b#c", "[x]", "$HOME", "日誌", "o'hare", "semi;colon", "co:lon"]
    notes = {name: f"kettleword {number}\n" for number, name in enumerate(names)}
    root = new_workspace(daemon, tmp_path / "odd", **notes)
    out = editor(
        (daemon, root, root),
        """
        for _, entry in ipairs(search('kettleword').items) do
          out[vim.api.nvim_buf_get_name(entry.bufnr)] = true
        end
        search('"kettleword 1"', '!')
        out.at = {vim.api.nvim_buf_get_name(0), vim.fn.getline(1)}
        """,
    )
    assert out.pop("at") == [f"{root}/a%b#c.md", "kettleword 1"]
    assert set(out) == {f"{root}/{name}.md" for name in names}


def test_filters_and_folders_complete(house, editor):
    Path(house[1], ".hidden").mkdir(exist_ok=True)
    out = editor(
        house,
        """
        for _, typed in ipairs({'', 'x si', 'path:', 'path:birds/', 'heron path:b', 'nothing:'}) do
          out[typed] = vim.fn.getcompletion('MemSearch ' .. typed, 'cmdline')
        end
        """,
    )
    assert out[""] == [f"{one.key}:" for one in FILTER_KEYS]
    assert out["x si"] == ["since:"]
    assert out["path:"] == ["path:birds/", "path:heron.md", "path:memory/"]
    assert out["path:birds/"] == ["path:birds/owl.md"]
    assert out["heron path:b"] == ["path:birds/"]
    assert out["nothing:"] == []


# Which notes


def test_the_workspace_is_the_one_that_is_meant(house, editor):
    out = editor(
        house,
        """
        local function searched()
          return vim.fn.fnamemodify(search('weir').context.memd.workspace, ':t')
        end
        out[1] = searched()                       -- from nowhere: the current directory's
        vim.cmd('cclose')
        vim.cmd('edit ' .. garden .. '/birds/owl.md')
        out[2] = searched()                       -- the file's
        out[3] = vim.bo.buftype .. searched()     -- in the list that this has opened: that of the hits
        vim.cmd('cclose')
        vim.cmd('edit remote://' .. garden .. '/heron.md')
        out[4] = searched()                       -- no file of this machine
        vim.cmd('cclose')
        vim.cmd('edit ' .. garden .. '/birds/owl.md')
        vim.cmd('MemRecall owl')
        eventually(function() return vim.fn.bufname() == 'memd://recall' end)
        out[5] = searched()                       -- that of the recall
        vim.cmd('cclose | enew')
        memd.setup({workspace = garden})
        out[6] = searched()
        vim.cmd('cclose')
        vim.b.memd_workspace = kitchen .. '/'
        out[7] = searched()
        """,
        cwd=house[2],
    )
    assert out == ["kitchen", "garden", "quickfixgarden", "kitchen", "garden", "garden", "kitchen"]


def test_the_environment_names_the_workspace_as_it_does_for_memctl(house, editor):
    out = editor(
        house,
        """
        vim.cmd('edit ' .. garden .. '/heron.md')
        out.workspace = search('weir').context.memd.workspace
        """,
        MEMD_WORKSPACE=house[2],
    )
    assert out["workspace"] == house[2]


def test_an_error_is_told_in_the_words_of_memd(house, editor):
    out = editor(
        house,
        """
        vim.cmd('MemSearch heron')
        vim.cmd('MemRecall heron')
        eventually(function() return #said == 2 end)
        out = said
        """,
        cwd="/",
    )
    for said in out:
        assert said["text"].startswith("MEMD_WORKSPACE: ")
        assert house[1] in said["text"]
        assert house[2] in said["text"]
        assert said["level"] == 4


# An answer comes when it comes


@pytest.mark.parametrize("elsewhere", ["new", "normal! v", "edit other.md"])
def test_whoever_went_on_is_not_interrupted(house, editor, elsewhere):
    out = editor(
        house,
        f"""
        vim.cmd('edit ' .. garden .. '/birds/owl.md')
        vim.cmd('MemSearch heron')
        vim.cmd({json.dumps(elsewhere)})
        local windows, window, name = #vim.api.nvim_list_wins(), vim.fn.win_getid(), vim.fn.bufname()
        eventually(function() return #said > 0 end)
        out.kept = {{
          windows == #vim.api.nvim_list_wins(), window == vim.fn.win_getid(), name == vim.fn.bufname(),
        }}
        out.said, out.found = said[1].text, #list().items
        """,
    )
    assert out["kept"] == [True, True, True]
    assert out["said"] == "memd: 1 found for heron, see the quickfix list (:copen)"
    assert out["found"] == 1


def test_the_newest_search_is_the_one_that_is_shown(house, editor):
    out = editor(
        house,
        """
        local answered = 0
        local take = vim.fn.setqflist
        for _, query in ipairs({'heron', 'owl', 'weir'}) do vim.cmd('MemSearch ' .. query) end
        eventually(function() return #list().items > 0 end)
        ask('ping', {})
        out = {lists = vim.fn.getqflist({nr = '$'}).nr, title = list().title}
        """,
    )
    assert out == {"lists": 1, "title": "memd: weir"}


def test_many_questions_at_once_get_their_own_answers(house, editor):
    out = editor(
        house,
        """
        local calls = {}
        for number = 1, 16 do
          local query = number % 2 == 0 and 'heron' or 'owl'
          memd.request('search', {query = query, workspace = garden}, function(err, answer)
            calls[#calls + 1] = {number = number, path = err or answer.hits[1].path}
          end)
        end
        eventually(function() return #calls >= 16 end)
        ask('ping', {})
        out = calls
        """,
    )
    assert sorted(call["number"] for call in out) == list(range(1, 17))
    for call in out:
        assert call["path"] == ("birds/owl.md" if call["number"] % 2 else "heron.md")


def test_more_questions_at_once_than_it_takes_are_answered(house, editor):
    out = editor(
        house,
        """
        local calls = {}
        for number = 1, 40 do
          memd.request('search', {query = 'heron', workspace = garden}, function(err)
            calls[#calls + 1] = err or 'answered'
          end)
        end
        eventually(function() return #calls >= 40 end)
        ask('ping', {})
        out = calls
        """,
    )
    assert len(out) == 40
    assert out.count("answered") >= 16
    assert all(said == "answered" or said.startswith("MEMD_BUSY: ") for said in out)


def test_a_big_answer_comes_whole(editor, new_workspace, daemon, tmp_path):
    # Each word is one token: long ones are none that the model knows.
    lines = "\n".join(f"{number} {'ä' * 300}" for number in range(500))
    root = new_workspace(daemon, tmp_path / "big", big="kettleword\n")
    (tmp_path / "big" / "big.md").write_text(f"{lines}\n")
    out = editor(
        (daemon, root, root),
        """
        local _, answer = ask('get', {path = 'big.md', workspace = garden})
        local last = answer.text:match('\\n(%d+) [^\\n]*$')
        out = {#answer.text, answer.text:sub(1, 4), last, ask('ping', {}) == nil}
        """,
    )
    assert out == [len(lines.encode()), "0 ä", "499", True]


def test_what_cannot_be_sent_is_an_error_and_no_more(house, editor):
    out = editor(
        house,
        """
        out.long = ask('search', {query = ('x'):rep(2 * 1024 * 1024)})
        out.value = ask('search', {query = function() end})
        out.bytes = ask('search', {query = '\\255', workspace = garden})
        out.ping = {ask('ping', {})}
        """,
    )
    assert "search can't be sent" in out["long"]
    assert "search can't be sent" in out["value"]
    assert "MEMD_INVALID: $.query is not UTF-8" in out["bytes"]
    assert out["ping"][1]["pong"]


def test_no_good_match_is_told_and_the_nearest_are_shown_on_request(editor, daemon, tmp_path):
    """With the shipped model, which finds something near to anything: no list and no buffer of that."""
    root = tmp_path / "notes"
    root.mkdir()
    (root / "bread.md").write_text("Sourdough rises overnight in the kitchen, and is baked in the morning.\n")
    (root / "memory").mkdir()
    (root / "memory" / "config.toml").write_text("min_score = 0.0\n")
    notes = daemon.add(root)
    out = editor(
        (daemon, notes, notes),
        """
        local function told(command)
          said = {}
          vim.cmd(command)
          eventually(function() return #said > 0 end)
          return said[1].text
        end
        out.search, out.items = told('MemSearch zzzqqq'), #list().items
        out.recall, out.buffer = told('MemRecall zzzqqq'), vim.fn.bufnr('memd://recall')
        said = {}
        vim.cmd('MemNearest zzzqqq')
        eventually(function() return #list().items > 0 or #said > 0 end)
        out.nearest, out.caveats, out.context = list().items, list().caveats, list().context
        """,
    )
    assert out["search"].startswith("memd: no good match for zzzqqq (:MemNearest")
    assert out["recall"].startswith("memd: nothing is known about zzzqqq: no note is a good match")
    assert (out["items"], out["buffer"]) == (0, -1)
    assert len(out["nearest"]) == 1
    assert out["caveats"] == "no good match, only the closest hits"
    assert out["context"]["memd"]["confidence"] == "none"

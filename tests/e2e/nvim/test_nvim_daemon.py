"""A daemon that ends, hangs, starts or is somebody else does no harm to an editor with the plugin."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from daemon_process import until
from patience import PATIENCE

PLUGIN = Path(__file__).parents[3] / "memctl/editors/nvim"


# The daemon's life


def test_a_search_starts_the_daemon_and_the_editor_goes_on(own_house, editor):
    own_house[0].stop()
    out = editor(
        own_house,
        """
        vim.cmd('MemSearch heron')
        out.returned_first = #list().items == 0
        vim.cmd('MemSearch owl')
        eventually(function() return #list().items > 0 or #said > 0 end)
        out.title, out.said = list().title, said
        """,
    )
    assert out == {"returned_first": True, "title": "memd: owl", "said": []}


@pytest.mark.parametrize("start", ["true", "false"])
def test_a_daemon_of_another_runtime_directory_answers_the_editor(house, editor, tmp_path, start):
    """An editor in cron, a container or after su: the lock of the state directory says where memd listens."""
    out = editor(
        house,
        f"""
        memd.setup({{start = {start}}})
        out.hits = #search('heron').items
        out.said = said
        """,
        XDG_RUNTIME_DIR=str(tmp_path / "elsewhere"),
    )
    assert out == {"hits": 1, "said": []}


def test_without_a_daemon_that_can_be_started_it_says_so(own_house, editor):
    own_house[0].stop()
    own_house[0].state.chmod(0o755)
    out = editor(
        own_house,
        f"""
        local function told(options)
          memd.setup(options)
          vim.cmd('MemSearch heron')
          eventually(function() return #said > 0 end)
          return table.remove(said).text
        end
        out[1] = told({{memctl = '/no/such/memctl'}})
        out[2] = told({{memctl = vim.fn.exepath('memctl')}})
        vim.fn.setfperm('{own_house[0].state}', 'rwx------')
        out[3] = told({{start = false}})
        """,
    )
    assert "'/no/such/memctl' can't be run" in out[0]
    assert "memctl: " in out[1]
    assert "chmod 700" in out[1]
    assert "no memd listens at" in out[2]
    assert "memctl start" in out[2]


def test_a_daemon_that_dies_during_a_search_costs_no_search(own_house, editor):
    out = editor(
        own_house,
        f"""
        local function dies_while(act)
          local answer = answered('ping', {{}})
          vim.loop.kill(answer.pid, 'sigstop')
          act()
          vim.wait(100)
          vim.loop.kill(answer.pid, {int(signal.SIGKILL)})
        end
        dies_while(function() vim.cmd('MemSearch heron') end)
        eventually(function() return #list().items > 0 or #said > 0 end)
        assert(#said == 0, said[1] and said[1].text)
        out.found = #list().items
        memd.setup({{start = false}})
        dies_while(function() vim.cmd('MemSearch owl') end)
        eventually(function() return #said > 0 end)
        out.said = said[1].text
        """,
    )
    own_house[0].process.wait()
    until(lambda: not own_house[0].listens())  # both are dead before the fixture asks
    assert out["found"] == 1
    assert "no memd listens at" in out["said"] or "the connection broke" in out["said"]


def test_what_writes_is_not_asked_twice(own_house, editor):
    out = editor(
        own_house,
        f"""
        local answer = answered('ping', {{}})
        vim.loop.kill(answer.pid, 'sigstop')
        local entry = {{workspace = garden, topic = 't', title = 'once', content = 'once'}}
        memd.request('extract_memory', entry, function(err) out.err = err end)
        vim.wait(100)
        vim.loop.kill(answer.pid, {int(signal.SIGKILL)})
        eventually(function() return out.err end)
        """,
    )
    own_house[0].process.wait()  # of the one that was killed the fixture wants to hear nothing more
    assert out["err"].startswith("memd: the connection broke during extract_memory (")


def test_an_error_in_a_callback_is_its_own(own_house, editor):
    out = editor(
        own_house,
        f"""
        local answer = answered('ping', {{}})
        vim.loop.kill(answer.pid, 'sigstop')
        memd.setup({{timeout_ms = 60000}})  -- a deadline would tell them, too
        out.told = 0
        for number = 1, 14 do
          memd.request('health', {{}}, function()
            if number % 2 == 0 then error('of a callback') end
            out.told = out.told + 1
          end)
        end
        vim.loop.kill(answer.pid, {int(signal.SIGKILL)})
        eventually(function() return out.told == 7 end)
        """,
    )
    own_house[0].process.wait()
    assert out["told"] == 7


def test_a_daemon_that_was_restarted_is_found_again(own_house, editor):
    out = editor(
        own_house,
        """
        search('heron')
        vim.fn.system({'memctl', 'restart'})
        local status = vim.v.shell_error
        out = {status = status, found = #search('owl').items, said = said}
        """,
    )
    assert out == {"status": 0, "found": 1, "said": []}


def test_a_daemon_that_hangs_does_not_hang_the_editor(own_house, editor):
    out = editor(
        own_house,
        """
        memd.setup({timeout_ms = 300})
        local answer = answered('ping', {})
        local ticks = 0
        vim.loop.new_timer():start(0, 10, function() ticks = ticks + 1 end)
        vim.loop.kill(answer.pid, 'sigstop')
        vim.cmd('MemSearch heron')
        local before = ticks
        eventually(function() return #said > 0 end)
        vim.loop.kill(answer.pid, 'sigcont')
        out.went_on, out.said = ticks > before, said[1].text
        ask('ping', {})  -- what was late has come before this answer
        out.ping, out.found, out.messages = {ask('ping', {})}, #list().items, #said
        out.errors = vim.v.errmsg
        """,
    )
    assert out["went_on"]
    assert out["said"].startswith("memd: no answer to search within 0.3 s")
    assert out["ping"][1]["pong"]
    assert (out["found"], out["messages"], out["errors"]) == (0, 1, "")


def test_the_editor_ends_with_a_question_open(own_house, editor):
    out = editor(
        own_house,
        """
        local answer = answered('ping', {})
        memd.statusline()
        vim.loop.kill(answer.pid, 'sigstop')
        vim.cmd('MemSearch heron')
        vim.wait(50)
        out.pid = answer.pid
        """,
    )
    os.kill(out["pid"], signal.SIGCONT)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n", b"\xc1", b"\x94\x00\x01\xa4ping\x90", b""])
def test_what_is_no_memd_is_told(house, editor, said):
    folder = Path(tempfile.mkdtemp(prefix="memd-test-"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        listening.listen()

        def answer():
            client, _ = listening.accept()
            with client:
                client.recv(1000)
                client.sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        out = editor(
            house,
            "vim.cmd('MemSearch heron') eventually(function() return #said > 0 end) out = said",
            MEMD_SOCKET=str(folder / "s"),
        )
        thread.join()
    shutil.rmtree(folder)
    assert "memd.hello" in out[0]["text"]


def test_the_list_says_what_an_answer_lacks(own_house, editor):
    Path(own_house[1]).rename(f"{own_house[1]} elsewhere")
    out = editor(
        own_house,
        """
        for _ = 1, 50 do
          out = search('heron')
          if out.caveats:find('missing') then break end
          vim.wait(200)
        end
        """,
        cwd="/",
        MEMD_WORKSPACE=own_house[1],
    )
    Path(f"{own_house[1]} elsewhere").rename(own_house[1])
    assert out["caveats"].startswith("words only: root-missing")
    assert len(out["items"]) == 1


def test_a_folder_that_others_may_enter_is_not_trusted(house, editor, tmp_path):
    """As memctl: somebody else could be listening there."""
    (tmp_path / "memd").mkdir()
    (tmp_path / "memd").chmod(0o755)
    out = editor(
        house,
        "vim.cmd('MemSearch heron') eventually(function() return #said > 0 end) out = said",
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    assert f"chmod 700 {tmp_path}/memd" in out[0]["text"]


# Status


def test_the_status_follows_what_happens(own_house, editor):
    out = editor(
        own_house,
        """
        memd.setup({start = false})
        local function shows(text)
          eventually(function() return vim.fn.search(text, 'nw') > 0 end)
        end
        vim.cmd('MemStatus')
        shows('ready  *2  ')
        out.name = vim.fn.bufname()
        vim.fn.writefile({'A new note'}, garden .. '/new.md')
        shows('ready  *3  ')
        vim.fn.system({'memctl', 'stop'})
        shows('memd is not running')
        vim.fn.system({'memctl', 'start'})
        shows('ready  *3  ')
        out.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')
        """,
    )
    assert out["name"] == "memd://status"
    assert own_house[1] in out["text"]
    assert own_house[2] in out["text"]


def test_a_statusline_says_how_it_stands(own_house, editor):
    daemon = own_house[0]
    daemon.stop()
    out = editor(
        own_house,
        """
        memd.setup({timeout_ms = 300})
        vim.o.statusline = "%{v:lua.require'memd'.statusline()}"
        local function line() return vim.api.nvim_eval_statusline(vim.o.statusline, {fillchar = ' '}).str end
        local function becomes(text)
          assert(vim.wait(80000, function() return line() == text end, 10), line() .. ', not ' .. text)
        end
        out.at_first = line()
        becomes('memd off')
        out.nobody_started_it = vim.fn.filereadable(vim.env.XDG_RUNTIME_DIR .. '/memd/memd.sock') == 0
        vim.fn.system({'memctl', 'start'})
        becomes('memd')  -- this buffer is in no workspace, and there are two
        vim.cmd('edit ' .. garden .. '/heron.md')
        becomes('memd ready')
        local answer = answered('ping', {})
        vim.loop.kill(answer.pid, 'sigstop')
        becomes('memd stuck')
        vim.loop.kill(answer.pid, 'sigcont')
        becomes('memd ready')
        """,
    )
    assert out == {"nobody_started_it": True, "at_first": "memd"}


def test_the_statusline_never_says_off_of_a_daemon_that_runs(own_house, editor):
    """Neither before it is known, nor while it hangs with its queue of connections full."""
    out = editor(
        own_house,
        f"""
        local pipes, answer = {{}}, answered('ping', {{}})
        local words = {{}}
        vim.cmd('edit ' .. garden .. '/heron.md')
        local function becomes(text)
          eventually(function() words[#words + 1] = memd.statusline() return words[#words] == text end)
        end
        becomes('memd ready')
        vim.loop.kill(answer.pid, 'sigstop')
        for number = 1, 1000 do
          pipes[number] = vim.loop.new_pipe(false)
          pipes[number]:connect('{own_house[0].socket}', function() end)
        end
        becomes('memd stuck')
        vim.loop.kill(answer.pid, 'sigcont')
        becomes('memd ready')
        for _, word in ipairs(words) do out[word] = true end
        """,
    )
    assert {"memd", "memd ready", "memd stuck"} <= out.keys()
    assert "memd off" not in out


def test_a_key_is_handled_at_once_while_the_daemon_hangs(own_house, editor):
    """Searches, a recall, the status and the statusline are open, and no key waits 100 ms for any of them.

    But for two in a hundred, for which a loaded machine may have had no time.
    """
    out = editor(
        own_house,
        """
        memd.statusline()
        local answer = answered('ping', {})
        vim.loop.kill(answer.pid, 'sigstop')
        local began = vim.loop.hrtime()
        local function spent_ms()
          local ms = (vim.loop.hrtime() - began) / 1e6
          began = vim.loop.hrtime()
          return ms
        end
        out.slow = 0
        for number = 1, 100 do
          if number % 20 == 1 then vim.cmd('MemSearch heron') vim.cmd('MemRecall owl') memd.statusline() end
          if number == 50 then vim.cmd('MemStatus') end
          vim.api.nvim_feedkeys('x', 'xt', true)  -- "x": until the key is handled
          if spent_ms() >= 100 then out.slow = out.slow + 1 end
          vim.wait(10)
          spent_ms()
        end
        vim.loop.kill(answer.pid, 'sigcont')
        """,
    )
    assert out["slow"] <= 2


def test_a_status_that_was_closed_stays_closed(house, editor):
    out = editor(
        house,
        """
        vim.cmd('MemStatus')
        eventually(function() return vim.fn.search('process', 'nw') > 0 end)
        vim.cmd('bwipeout!')
        vim.wait(2500)  -- longer than it takes until the next page
        out.buffers = vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())
        """,
    )
    assert not any("memd://" in name for name in out["buffers"])


# Itself


def test_nothing_is_loaded_before_it_is_used(house, editor):
    """The start of the editor costs three commands; the interface is one module."""
    out = editor(
        house,
        "out.loaded = vim.tbl_filter(function(n) return n:find('^memd') end, vim.tbl_keys(package.loaded))",
    )
    assert out["loaded"] == ["memd"]  # by the test itself


def test_a_setting_that_does_not_exist_is_refused(house, editor):
    out = editor(
        house,
        """
        out.name = tostring(select(2, pcall(memd.setup, {timeout = 3})))
        out.kind = tostring(select(2, pcall(memd.setup, {timeout_ms = '3'})))
        out.whole = tostring(select(2, pcall(memd.setup, {limit = 2.5})))
        out.kept = require('memd.config').values.timeout_ms
        """,
    )
    assert out["name"].startswith("memd: there is no option 'timeout'; there are ")
    assert out["kind"] == 'memd: timeout_ms must be a number, not "3"'
    assert out["whole"] == "memd: limit must be a whole number from 1, not 2.5"
    assert out["kept"] == 5000


def test_the_help_page_is_found(house, editor, tmp_path):
    out = editor(
        house,
        """
        for _, subject in ipairs({'memd', ':MemSearch', 'memd.statusline()'}) do
          vim.cmd('help ' .. subject)
          out[#out + 1] = vim.api.nvim_buf_get_name(0)
        end
        """,
    )
    assert out == [str(PLUGIN / "doc/memd.txt")] * 3
    shutil.copytree(PLUGIN / "doc", tmp_path / "doc")
    (tmp_path / "doc/tags").unlink()
    subprocess.run(
        ["nvim", "--headless", "--clean", "-c", f"helptags {tmp_path}/doc", "-c", "qall!"],
        check=True,
        timeout=60 * PATIENCE,
    )
    assert (tmp_path / "doc/tags").read_text() == (PLUGIN / "doc/tags").read_text()

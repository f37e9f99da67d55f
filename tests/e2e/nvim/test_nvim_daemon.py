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

from memctl import paths

PLUGIN = Path(__file__).parents[3] / "memctl/editors/nvim"


# The daemon's life


def test_a_search_starts_the_daemon_and_the_editor_goes_on(own_house, editor):
    """Nobody listens: memctl starts one; the command returns before there is an answer."""
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
        memd.setup({{start = {start}, memctl = '/no/such/memctl'}})
        out.hits = #search('heron').items
        out.said = said
        """,
        XDG_RUNTIME_DIR=str(tmp_path / "elsewhere"),
    )
    assert out == {"hits": 1, "said": []}


def test_without_a_daemon_that_can_be_started_it_says_so(own_house, editor):
    """No such memctl; a memctl that fails, in its own words; start = false."""
    own_house[0].stop()
    own_house[0].state.chmod(0o755)
    out = editor(
        own_house,
        """
        local function told(options)
          memd.setup(options)
          vim.cmd('MemSearch heron')
          eventually(function() return #said > 0 end)
          return table.remove(said).text
        end
        out[1] = told({memctl = '/no/such/memctl'})
        out[2] = told({memctl = vim.fn.exepath('memctl')})
        out[3] = told({start = false})
        """,
    )
    own_house[0].state.chmod(0o700)
    assert "'/no/such/memctl' can't be run" in out[0]
    assert "memctl: " in out[1]
    assert "chmod 700" in out[1]
    assert "no memd listens at" in out[2]
    assert "memctl start" in out[2]


def test_a_daemon_that_dies_during_a_search_costs_no_search(own_house, editor):
    """Another one is started and asked again; where none may be started, the user is told."""
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
    """The connection breaks while an entry is written: an error, and no second one."""
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
    """When the connection breaks, all who wait for an answer are told, whatever the others do."""
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
    """No error, no word: the second search connects anew."""
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
    """The command returns, other work goes on, a message comes; the late answer harms nothing."""
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
    """:qall does not wait for a daemon that hangs; its exit code is 0."""
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
    """Somebody else listens and answers in another language, with a question, or not at all."""
    folder = Path(tempfile.mkdtemp(prefix="memd-test-"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        listening.listen()

        def answer():
            for _ in range(3):  # a search whose connection broke is asked again
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
    assert out[0]["text"].startswith("memd: the connection broke during search (")


def test_the_list_says_what_an_answer_lacks(own_house, editor):
    """The folder was moved away: the hits are those of the index, and the title says so."""
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


# The place of the socket


@pytest.mark.parametrize(
    "environment",
    [
        {"MEMD_SOCKET": "/somewhere/memd.sock"},
        {"MEMD_SOCKET": "below/memd.sock"},
        {"MEMD_SOCKET": "", "XDG_RUNTIME_DIR": "/no/such/runtime"},
        {"XDG_RUNTIME_DIR": "relative", "TMPDIR": "/var/tmp"},
        {"XDG_RUNTIME_DIR": "", "TMPDIR": ""},
        {"MEMD_SOCKET": "/" + "x" * 103},
    ],
)
def test_the_socket_is_where_memctl_looks_for_it(house, editor, monkeypatch, environment):
    """From the same environment the plugin and memctl come to the same path, or to none."""
    for name in ("MEMD_SOCKET", "XDG_RUNTIME_DIR", "TMPDIR"):
        monkeypatch.setenv(name, environment.get(name, ""))
    monkeypatch.chdir(house[1])
    try:
        expected = str(paths.socket_path())
    except paths.PathError as error:
        expected = str(error)
    out = editor(
        house,
        "out.path, out.reason = require('memd.place').socket()",
        **{name: environment.get(name, "") for name in ("MEMD_SOCKET", "XDG_RUNTIME_DIR", "TMPDIR")},
    )
    if "path" in out:
        assert out["path"] == expected
    else:
        assert "104 bytes, 103 are possible" in out["reason"]
        assert "104 bytes, 103 are possible" in expected


def test_a_folder_that_others_may_enter_is_not_trusted(house, editor, tmp_path):
    """As memctl: somebody else could be listening there."""
    (tmp_path / "memd").mkdir()
    (tmp_path / "memd").chmod(0o755)
    out = editor(
        house,
        "vim.cmd('MemSearch heron') eventually(function() return #said > 0 end) out = said",
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    assert out[0]["text"].startswith(f"memd: {tmp_path}/memd is not a folder of yours alone")


# Status


def test_the_status_follows_what_happens(own_house, editor):
    """A note that is saved, a restart of the daemon: the buffer and the statusline tell, unasked."""
    out = editor(
        own_house,
        """
        memd.setup({start = false})
        local function shows(text)
          eventually(function() return vim.fn.search(text, 'nw') > 0 end)
        end
        vim.cmd('MemStatus')
        shows('2 sources, ')
        out.name, out.first = vim.fn.bufname(), vim.fn.getline(1)
        vim.fn.writefile({'A new note'}, garden .. '/new.md')
        shows('3 sources, ')
        vim.fn.system({'memctl', 'stop'})
        shows('connection is closed\\\\|no memd listens')
        out.off = memd.statusline()
        vim.fn.system({'memctl', 'start'})
        shows('3 sources, ')
        vim.fn.writefile({'Another note'}, garden .. '/newer.md')
        shows('4 sources, ')
        out.lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
        """,
    )
    assert out["name"] == "memd://status"
    assert out["first"].startswith("memd ")
    assert out["off"] == "memd off"
    assert {own_house[1], own_house[2], "  ready"} <= set(out["lines"])


def test_a_statusline_says_how_it_stands(own_house, editor):
    """Off and asked for by nobody, ready after somebody else has started it, stuck when it hangs."""
    daemon = own_house[0]
    daemon.stop()
    out = editor(
        own_house,
        """
        memd.setup({timeout_ms = 300})
        vim.o.statusline = "%{v:lua.require'memd'.statusline()}"
        local function line() return vim.api.nvim_eval_statusline(vim.o.statusline, {fillchar = ' '}).str end
        local function becomes(text)
          assert(vim.wait(20000, function() return line() == text end, 10), line() .. ', not ' .. text)
        end
        becomes('memd off')
        vim.wait(300)
        out.nobody_started_it = vim.fn.filereadable(vim.env.XDG_RUNTIME_DIR .. '/memd/memd.sock') == 0
        vim.fn.system({'memctl', 'start'})
        becomes('memd')  -- this buffer is in no workspace, and there are two
        vim.cmd('edit ' .. garden .. '/heron.md')
        becomes('memd ready')
        local answer = answered('ping', {})
        vim.loop.kill(answer.pid, 'sigstop')
        require('memd.status').refresh()
        becomes('memd stuck')
        vim.loop.kill(answer.pid, 'sigcont')
        vim.fn.writefile({'A new note'}, garden .. '/new.md')
        becomes('memd ready')
        """,
    )
    assert out == {"nobody_started_it": True}


def test_a_status_that_was_closed_stays_closed(house, editor):
    """Events go on; the buffer that was wiped out is not made again."""
    out = editor(
        house,
        """
        vim.cmd('MemStatus')
        eventually(function() return vim.fn.search('sources, ', 'nw') > 0 end)
        vim.cmd('bwipeout!')
        require('memd.status').refresh()
        ask('ping', {})
        vim.wait(300)
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
    """So is one of another type; what was set before stays."""
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
    """:help memd and :help :MemSearch; the list of tags that is shipped is the one that the page gives."""
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
        timeout=60,
    )
    assert (tmp_path / "doc/tags").read_text() == (PLUGIN / "doc/tags").read_text()

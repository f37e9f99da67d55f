"""Neovim without a plugin talks to a real daemon and keeps its channel."""

import json
import signal
import sys

import pytest
from daemon_process import folder_of
from headless_nvim import run_lua

# `request` returns {true, answer} or {false, error text}.
LUA = """
local out = {{}}
local socket = {socket}
local channel = vim.fn.sockconnect('pipe', socket, {{rpc = true}})
local workspace = {root}
local function request(method, params)
  local ok, answer = pcall(vim.fn.rpcrequest, channel, method, params)
  return {{ok, ok and answer or tostring(answer)}}
end
{body}
finish(out)
"""


@pytest.fixture
def nvim(sample, tmp_path):
    """A function that runs Lua in a headless Neovim beside the sample workspace, or another daemon's root."""

    def run(body, root=sample[1], daemon=sample[0], socket=None):
        script = LUA.format(
            socket=json.dumps(str(socket or daemon.socket)), root=json.dumps(str(root)), body=body
        )
        return run_lua(script, environment=daemon.environment, folder=tmp_path, cwd=root, options=["--clean"])

    return run


def test_an_errors_text_reaches_the_user(nvim):
    out = nvim("""
        out.parameter = request('search', {query = 'x', workspace = workspace, limit = 'ten'})
        out.method = request('serach', {})
        out.workspace = request('search', {query = 'x', workspace = '/nowhere'})
        out.missing = request('get', {workspace = workspace, path = '../../etc/passwd'})
        out.shape = request('search', 'not a table')
        out.ping = request('ping', {})
    """)
    for name, told in {
        "parameter": "MEMD_INVALID: $.limit: expected int, got str",
        "method": "MEMD_METHOD: there is no method 'serach'; there are",
        "workspace": "MEMD_WORKSPACE: ",
        "missing": "MEMD_NOT_FOUND: ../../etc/passwd is not an indexed source",
        "shape": "MEMD_INVALID: ",
    }.items():
        ok, text = out[name]
        assert not ok
        assert told in text
        assert "unknown error" not in text
    assert out["ping"][0]


def test_a_daemon_that_dies_during_a_request_is_an_error_and_no_more(nvim, daemon, tmp_path):
    root = daemon.add(folder_of(tmp_path / "notes"))
    out = nvim(
        f"""
        local pid = request('ping', {{}})[2].pid
        vim.loop.kill(pid, 'sigstop')
        vim.loop.new_timer():start(200, 0, function() vim.loop.kill(pid, {int(signal.SIGKILL)}) end)
        out.during = request('search', {{query = 'x', workspace = workspace}})
        out.after = request('ping', {{}})
        out.started = vim.fn.system({{ {json.dumps(sys.executable)}, '-m', 'memctl', 'ping' }})
        channel = vim.fn.sockconnect('pipe', socket, {{rpc = true}})
        out.again = request('search', {{query = 'x', workspace = workspace}})
        """,
        root,
        daemon,
    )
    assert [out[name][0] for name in ("during", "after")] == [False, False]
    assert "pong" in out["started"]
    assert out["again"][0], out["again"]

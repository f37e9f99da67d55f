"""Neovim without a plugin talks to a real daemon and keeps its channel."""

import json
import signal
import sys

import pytest
from headless_nvim import run_lua
from recorded_socket import Recorded

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


@pytest.fixture
def keyword_only(sample, tmp_path):
    """A function that makes a workspace of its own, without a model, with what the test puts in it."""
    daemon, _ = sample
    made = []

    def make(**notes):
        root = tmp_path / "words"
        made.append(daemon.add_notes(root, {f"{name}.md": text for name, text in notes.items()}))
        return root

    yield make
    for root in made:
        daemon.call("workspace.remove", path=root)


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
    (tmp_path / "notes").mkdir()
    root = daemon.add(tmp_path / "notes")
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


def test_every_frame_is_one_that_neovim_takes(nvim, sample, keyword_only):
    daemon, _ = sample
    with Recorded(daemon.socket) as recorded:
        nvim(
            """
            for _, method in ipairs({'memd.hello', 'ping', 'status', 'health', 'workspace.list', 'serach'}) do
              request(method, {})
            end
            request('subscribe', {})
            local here = {workspace = workspace}
            request('index', {workspace = workspace, progress = true})
            request('workspace.configure', here)
            request('check', here)
            for number = 1, 20 do
              vim.fn.rpcnotify(channel, 'nobody listens', {number})
              vim.fn.writefile({'heron ' .. number}, workspace .. '/' .. number .. '.md')
              request('search', {query = 'heron', workspace = workspace, sync = true})
            end
            request('recall', {query = 'heron', workspace = workspace})
            request('get', {path = 'good.md', workspace = workspace})
            request('get', {path = 'none.md', workspace = workspace})
            request('search', {query = '\\255', workspace = workspace})
            request('search', {query = 'x', workspace = workspace, limit = 'ten'})
            vim.wait(300)
            """,
            keyword_only(good="A heron stands by the weir.\n"),
            socket=recorded.path,
        )
        [exchange] = recorded.exchanges
    asked = [frame[1] for frame in exchange.asked if frame[0] == 0]
    answered = [frame for frame in exchange.answered if frame[0] == 1]
    assert len(asked) >= 34
    assert [frame[1] for frame in answered] == asked  # Neovim itself asks one after the other
    assert {frame[0] for frame in exchange.answered} == {1, 2}
    assert all(keys_are_text(frame) for frame in exchange.answered)
    errors = [frame[2] for frame in answered if frame[2] is not None]
    assert len(errors) == 4
    assert {(type(fault), fault in (0, 1), type(text)) for fault, text in errors} == {(int, True, str)}


def keys_are_text(value):
    """Neovim turns a map with other keys into nonsense."""
    if isinstance(value, dict):
        return all(type(key) is str and key for key in value) and all(map(keys_are_text, value.values()))
    return all(map(keys_are_text, value)) if isinstance(value, list) else True

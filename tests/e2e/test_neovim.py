"""Does Neovim, with no plugin, talk to a real daemon and keep its channel?"""

import json
import shutil
import subprocess

import pytest

# `request` returns {true, answer} or {false, error text}; what is collected in `out` is printed as JSON.
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
io.stdout:write(vim.json.encode(out))
vim.cmd('qall!')
"""


@pytest.fixture
def nvim(sample, tmp_path):
    """A function that runs Lua in a headless Neovim beside the sample workspace."""
    if shutil.which("nvim") is None:
        pytest.skip("nvim is not installed: apt-get install neovim")
    daemon, root = sample

    def run(body: str, root: str = root) -> dict:
        script = tmp_path / "script.lua"
        script.write_text(LUA.format(socket=json.dumps(str(daemon.socket)), root=json.dumps(root), body=body))
        done = subprocess.run(
            ["nvim", "--headless", "--clean", "-n", "-c", f"luafile {script}"],
            env=daemon.environment | {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.startswith(("{", "[")), done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


def test_the_line_of_the_readme_gives_hits(nvim):
    """Functions sockconnect and rpcrequest are all it takes; getcwd() names the workspace."""
    out = nvim("""
        local params = {query = 'breast cancer gene', workspace = vim.fn.getcwd()}
        out.answer = request('search', params)
    """)
    ok, answer = out["answer"]
    assert ok, answer
    assert answer["mode"] == "hybrid"
    assert "BRCA1 mutation analysis" in answer["hits"][0]["snippet"]


def test_an_errors_text_reaches_the_user(nvim):
    """Codes and words of memd, never "unknown error"; the channel answers the next request."""
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


def test_an_empty_lua_table_means_no_parameters(nvim):
    """Lua's {} arrives as an empty array, no argument as none: both are fine, also as a value."""
    out = nvim("""
        out.empty = request('ping', {})
        out.dict = request('ping', vim.empty_dict())
        out.bare = {pcall(vim.fn.rpcrequest, channel, 'ping')}
        out.tags = request('search', {query = 'sourdough', workspace = workspace, tag = {}})
        out.settings = request('workspace.configure', {workspace = workspace, settings = {}})
        out.weights = request('search', {query = 'sourdough', workspace = workspace, weights = {}})
    """)
    for name in ("empty", "dict", "bare", "tags", "settings", "weights"):
        assert out[name][0], (name, out[name])
    assert out["tags"][1]["hits"]


def test_a_big_answer_arrives_whole(nvim, sample, tmp_path):
    """A note of more than a mebibyte comes through the channel byte by byte, and small ones after it."""
    daemon, _ = sample
    root = tmp_path / "big"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')  # its words are enough here
    text = "\n".join(f"line {number} " + "x" * 50 for number in range(20_000))
    (root / "big.md").write_text(text + "\n")
    daemon.add(root)
    try:
        out = nvim(
            """
            local answer = request('get', {workspace = workspace, path = 'big.md'})
            local text = answer[2].text
            out.answer = {answer[1], #text, text:sub(1, 7), text:sub(-10)}
            out.ping = request('ping', {})
            """,
            str(root),
        )
    finally:
        daemon.call("workspace.remove", path=str(root))
    assert len(text) > 1 << 20
    assert out["answer"] == [True, len(text), text[:7], text[-10:]]
    assert out["ping"][0]


def test_bytes_that_are_no_text_are_refused_by_name(nvim):
    """Neovim sends any bytes as a string: a clear error, and the channel lives."""
    out = nvim("""
        out.query = request('search', {query = 'caf\\233 \\255\\254', workspace = workspace})
        out.path = request('get', {path = '\\237\\160\\128', workspace = workspace})
        out.key = request('search', {['\\255'] = 'x', query = 'y', workspace = workspace})
        out.nul = request('search', {query = 'sour\\0dough', workspace = workspace})
        out.after = request('search', {query = 'sourdough', workspace = workspace})
    """)
    for name in ("query", "path", "key"):
        ok, text = out[name]
        assert not ok
        assert "MEMD_INVALID" in text
        assert "UTF-8" in text
    assert out["nul"][0]
    assert out["after"][1]["hits"]


def test_progress_comes_as_notifications_during_a_request(nvim, sample, tmp_path):
    """Neovim has no handler for them and waits for its answer: the channel lives all the same."""
    daemon, _ = sample
    root = tmp_path / "many"
    root.mkdir()
    for number in range(150):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nabout the number {number} and so on\n")
    daemon.call("workspace.add", path=str(root))
    try:
        out = nvim(
            """
            out.index = request('index', {workspace = workspace, progress = true})
            out.after = request('ping', {})
            """,
            str(root),
        )
    finally:
        daemon.call("workspace.remove", path=str(root))
    assert out["index"][0], out["index"]
    assert out["index"][1]["vectors"] == 150
    assert out["after"][0]


def test_a_channel_that_subscribed_stays_open(nvim, sample, tmp_path):
    """Saves are told to a Neovim that searches after each of them: it passes the events over and goes on."""
    daemon, _ = sample
    root = tmp_path / "followed"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "config.toml").write_text('provider = "none"\n')  # its words are enough here
    daemon.add(root)
    try:
        out = nvim(
            """
            out.subscribed = request('subscribe', {workspace = workspace})
            out.found = {}
            for number = 1, 20 do
              vim.fn.writefile({'kettleword' .. number}, workspace .. '/' .. number .. '.md')
              if number % 5 == 0 then vim.wait(100) end  -- events come in here, and between two requests
              local params = {query = 'kettleword' .. number, workspace = workspace, sync = true}
              out.found[number] = #request('search', params)[2].hits
            end
            out.ping = request('ping', {})
            """,
            str(root),
        )
    finally:
        daemon.call("workspace.remove", path=str(root))
    assert out["subscribed"] == [True, {"subscribed": True, "workspaces": [str(root)]}]
    assert out["found"] == [1] * 20
    assert out["ping"][0]


def test_requests_overlap_on_one_channel(nvim):
    """A notification from Neovim is ignored, twenty requests in a row are answered in turn."""
    out = nvim("""
        vim.fn.rpcnotify(channel, 'anything', {1, 2})
        for number = 1, 20 do
          out[number] = request('search', {query = 'water ' .. number, workspace = workspace, limit = 1})[1]
        end
    """)
    assert out == [True] * 20


def test_an_answer_that_takes_three_seconds_is_waited_for(nvim):
    """A daemon that the machine stops for a while answers when it goes on, on the same channel."""
    out = nvim("""
        local pid = request('ping', {})[2].pid
        vim.loop.kill(pid, 'sigstop')
        vim.loop.new_timer():start(3000, 0, function() vim.loop.kill(pid, 'sigcont') end)
        local began = vim.loop.hrtime()
        out.late = request('search', {query = 'sourdough', workspace = workspace})
        out.took_s = (vim.loop.hrtime() - began) / 1e9
        out.ping = request('ping', {})
    """)
    assert out["late"][0], out["late"]
    assert out["late"][1]["hits"]
    assert out["took_s"] >= 2.5
    assert out["ping"][0]


def test_a_closed_channel_can_be_opened_again(nvim):
    """After chanclose a request fails in Neovim, and a new channel is answered."""
    out = nvim("""
        out.first = request('ping', {})
        vim.fn.chanclose(channel)
        out.closed = request('ping', {})
        channel = vim.fn.sockconnect('pipe', socket, {rpc = true})
        out.again = request('ping', {})
    """)
    assert [out[name][0] for name in ("first", "closed", "again")] == [True, False, True]


def test_a_neovim_that_ends_in_the_middle_of_a_request_harms_nobody(nvim, sample):
    """It hangs up while memd rebuilds; the work is finished for the others, by the same daemon."""
    daemon, root = sample
    pid = daemon.call("ping")["pid"]
    out = nvim("""
        io.stdout:write('{"asked": true}')
        io.stdout:flush()
        vim.loop.new_timer():start(20, 0, function() os.exit(0) end)
        request('index', {workspace = workspace, rebuild = true})
        io.stdout:write('answered too soon')
    """)
    assert out == {"asked": True}
    with daemon.client() as client:
        client.call("index", {"workspace": root}, timeout_s=60)
    [hit] = daemon.call("search", query="breast cancer gene", workspace=root, limit=1)["hits"]
    assert "BRCA1" in hit["snippet"]
    assert daemon.call("ping")["pid"] == pid

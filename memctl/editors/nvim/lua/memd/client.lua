-- Requests to memd, each over a new connection, and runs of memctl. Nothing here blocks: Neovim's rpcrequest() would
-- block the editor for as long as the daemon hangs.
--
-- `memctl ping` starts a daemon if none runs and returns its socket, so only memctl has the rules for both.

local config = require('memd.config')

local uv = vim.uv or vim.loop

local M = {}

local READS = { search = true, search_memory = true, recall = true, get = true, status = true, ping = true }
local TRIES, AGAIN_MS = 3, 100 -- for reads whose connection broke, as while a daemon is being killed
local LATE_MS = 1000 -- wait for memd's MEMD_TIMEOUT answer, which it sends at the deadline
local START_TIMEOUT_MS = 15000 -- memctl waits 10 s for a daemon; the rest is for memctl's own start
local MAX_REQUEST_BYTES = 1024 * 1024 -- memd closes the connection on a longer request

local socket -- memd's socket, as memctl reported it last; nil: ask memctl

--- Return the memctl of the installation that this file is part of, or the one on the PATH.
function M.program()
  if config.values.memctl then
    return vim.fn.expand(config.values.memctl)
  end
  local here = debug.getinfo(1, 'S').source:sub(2)
  local prefix = (uv.fs_realpath(here) or here):match('^(.*)/lib/python[^/]*/%a+%-packages/memctl/')
  local script = prefix and prefix .. '/bin/memctl'
  return script and vim.fn.executable(script) == 1 and script or 'memctl'
end

--- Run memctl: on_line gets each line of its output, on_exit(err) is called at its end, with nil after exit code 0.
function M.run(words, on_line, on_exit)
  local memctl, rest, said = M.program(), '', ''
  local ok, job = pcall(vim.fn.jobstart, vim.list_extend({ memctl }, words), {
    on_stdout = function(_, parts)
      parts[1] = rest .. parts[1]
      rest = table.remove(parts)
      vim.tbl_map(on_line, parts)
    end,
    on_stderr = function(_, parts)
      said = vim.trim(said .. table.concat(parts, ' '))
    end,
    on_exit = function(_, status)
      local text = said ~= '' and said or ('%s %s ended with %d'):format(memctl, words[1], status)
      on_exit(status ~= 0 and text or nil)
    end,
  })
  if ok and job > 0 then
    return job
  end
  on_exit(("memd: '%s' can't be run: see :help memd-memctl"):format(memctl))
end

local function locate(on_done)
  local words = { 'ping', '--json', not config.values.start and '--no-start' or nil }
  local job = M.run(words, function(line)
    socket = vim.json.decode(line).socket
  end, on_done)
  vim.defer_fn(function()
    pcall(vim.fn.jobstop, job)
  end, START_TIMEOUT_MS)
end

-- Send a frame and call done(err, answer, trouble); trouble is 'unsent' or 'broken' if there is no answer.
local function exchange(method, frame, timeout_ms, done)
  local pipe, timer, unpack = uv.new_pipe(false), uv.new_timer(), vim.mpack.Unpacker()
  local function finish(...)
    if not pipe:is_closing() then
      pipe:close()
      timer:close()
      done(...)
    end
  end
  local function broke(reason)
    finish(('memd: the connection broke during %s (%s): ask again'):format(method, reason), nil, 'broken')
  end
  local function receive(fault, bytes)
    local at = 1
    while bytes and at <= #bytes do
      local ok, message, after = pcall(unpack, bytes, at)
      if not ok or message ~= nil and type(message) ~= 'table' then
        return broke('what came is no message of memd')
      elseif message == nil then
        return -- incomplete: wait for the rest
      elseif message[1] == 1 then -- otherwise a notification
        return finish(message[3] ~= vim.NIL and message[3][2] or nil, message[4])
      end
      at = after
    end
    if not bytes then
      broke(fault or 'closed by memd')
    end
  end
  local late = ('memd: no answer to %s within %g s. Check it: memctl status'):format(method, timeout_ms / 1000)
  timer:start(timeout_ms + LATE_MS, 0, vim.schedule_wrap(function()
    finish(late)
  end))
  pipe:connect(socket, vim.schedule_wrap(function(err)
    if err then
      return finish(("memd: can't connect to memd at %s: %s"):format(socket, err), nil, 'unsent')
    end
    pipe:write(frame)
    pipe:read_start(vim.schedule_wrap(receive))
  end))
end

--- Call a method of memd; on_done(err, answer) is called once, in the main loop; err is a text for the user.
function M.request(method, params, on_done)
  params = vim.tbl_extend('keep', params, { timeout_ms = config.values.timeout_ms })
  local ok, frame = pcall(vim.mpack.encode, { 0, 1, method, { params } })
  if not ok or #frame > MAX_REQUEST_BYTES then
    local reason = ok and ('it has %d bytes, %d are allowed'):format(#frame, MAX_REQUEST_BYTES) or frame
    return on_done(("memd: %s can't be sent: %s"):format(method, reason))
  end
  local tries = 0
  local function try(err)
    if err then
      return on_done(err)
    elseif not socket then
      return locate(try)
    end
    tries = tries + 1
    exchange(method, frame, params.timeout_ms, function(fault, answer, trouble)
      if tries < TRIES and (trouble == 'unsent' or trouble and READS[method]) then
        socket = nil
        return vim.defer_fn(try, AGAIN_MS)
      end
      on_done(fault, answer)
    end)
  end
  try()
end

return M

-- How does Neovim ask memd and go on editing meanwhile?
--
-- Nothing in here waits. Neovim's own rpcrequest() holds the editor until the answer is there, without a limit
-- if the daemon hangs, and rpcnotify() brings no answer; so this speaks over a pipe of libuv. What it is given to
-- call, it calls once, in the main loop.

local config = require('memd.config')
local launch = require('memd.launch')
local place = require('memd.place')
local wire = require('memd.wire')

local uv = vim.uv or vim.loop

local M = {}

local MAX_ID = 2 ^ 32 - 1
-- What may be asked again when the connection broke, as after a restart of the daemon. Not at once: one that is
-- being killed takes connections for a moment still.
local READS = { search = true, search_memory = true, recall = true, get = true, status = true, ping = true }
local TRIES, AGAIN_MS = 3, 100
local LATE_MS = 1000 -- memd answers MEMD_TIMEOUT at the deadline itself; how much later that may arrive
local QUEUE_FULL_MS, QUEUE_FULL_TRIES = 50, 100 -- of connects while the daemon is busy: 5 s, as memctl

-- Who follows what happens sets these: a connection is open, is gone, has brought an event.
M.opened = function(_) end
M.closed = function() end
M.event = function(_) end

local connection -- the open one: pipe, and pending: id → function(err, result)
local attempt -- to open one: who waits for it, whether a daemon may be started
local last_id = 0

local function lose(lost, reason)
  if lost.closed then
    return
  end
  lost.closed = true
  lost.pipe:close()
  if connection == lost then
    connection = nil
  end
  for _, id in ipairs(vim.tbl_keys(lost.pending)) do
    local waiting = lost.pending[id]
    local text = 'memd: the connection broke during %s (%s): ask again'
    waiting.finish(text:format(waiting.method, reason), nil, true)
  end
  M.closed()
end

local function take(from, message)
  if message[1] == wire.NOTIFICATION then
    if message[2] == 'event' and type(message[3]) == 'table' and type(message[3][1]) == 'table' then
      M.event(message[3][1])
    end
    return
  end
  local waiting = from.pending[message[2]]
  if waiting then -- else it came too late, and nobody waits for it any more
    waiting.finish(wire.error_text(message[3]), message[4])
  end
end

local function read(into)
  local feed = wire.reader()
  into.pipe:read_start(function(err, bytes)
    local messages, fault = {}, err or 'closed by memd'
    if bytes then
      messages, fault = feed(bytes)
    end
    if fault then
      into.pipe:read_stop()
    end
    for _, message in ipairs(messages or {}) do
      vim.schedule(function()
        take(into, message)
      end)
    end
    if fault then
      vim.schedule(function()
        lose(into, fault)
      end)
    end
  end)
end

local function settle(err, opened)
  local waiters = attempt.waiters
  attempt, connection = nil, opened
  if opened then
    read(opened)
    M.opened(opened)
  end
  for _, waiter in ipairs(waiters) do
    waiter(err, opened)
  end
end

local try

local function failed(code, path)
  local nobody = code == 'ENOENT' or code == 'ECONNREFUSED'
  if nobody and not attempt.elsewhere then
    attempt.elsewhere = place.elsewhere()
    if attempt.elsewhere then
      return try()
    end
  end
  if code == 'EAGAIN' and attempt.tries < QUEUE_FULL_TRIES then
    attempt.tries = attempt.tries + 1
    vim.defer_fn(try, QUEUE_FULL_MS)
  elseif nobody and attempt.start and not attempt.started then
    attempt.started, attempt.elsewhere = true, nil
    launch.start(function(err)
      if err then
        settle(err)
      else
        try()
      end
    end)
  elseif nobody then
    settle(('memd: no memd listens at %s. Start it: memctl start'):format(path))
  else
    settle(("memd: can't connect to memd at %s: %s"):format(path, code))
  end
end

try = function()
  local path, reason = attempt.elsewhere, nil
  if not path then
    path, reason = place.socket()
  end
  if not path then
    return settle(reason)
  end
  local pipe = uv.new_pipe(false)
  local done = vim.schedule_wrap(function(err)
    if err then
      pipe:close()
      failed(err:match('^%u+') or err, path)
    else
      settle(nil, { pipe = pipe, pending = {} })
    end
  end)
  local ok, err = pipe:connect(path, done)
  if not ok then
    done(err)
  end
end

--- Connect where that is not done yet; on_ready(err, connection).
---
--- start: a daemon may be started.
function M.connect(start, on_ready)
  if connection then
    return on_ready(nil, connection)
  end
  local is_first = attempt == nil
  attempt = attempt or { waiters = {}, tries = 0 }
  attempt.start = attempt.start or start
  table.insert(attempt.waiters, on_ready)
  if is_first then
    try()
  end
end

local function send(to, method, params, on_done)
  last_id = last_id % MAX_ID + 1
  local id, timeout_ms = last_id, config.values.timeout_ms
  local frame, reason = wire.request(id, method, vim.tbl_extend('keep', params, { timeout_ms = timeout_ms }))
  if not frame then
    return on_done(reason)
  end
  local timer = uv.new_timer()
  local function finish(...)
    if to.pending[id] then
      to.pending[id] = nil
      timer:close()
      on_done(...)
    end
  end
  to.pending[id] = { method = method, finish = finish }
  local late = ('memd: no answer to %s within %g s. Is it well? memctl status'):format(method, timeout_ms / 1000)
  timer:start(timeout_ms + LATE_MS, 0, vim.schedule_wrap(function()
    finish(late)
  end))
  to.pipe:write(frame, vim.schedule_wrap(function(err)
    if err then
      lose(to, err)
    end
  end))
end

local function once(method, params, on_done, start)
  M.connect(start, function(err, opened)
    if err then
      on_done(err)
    elseif opened.closed then -- by the one who was told before us
      on_done(('memd: the connection broke before %s: ask again'):format(method), nil, true)
    else
      send(opened, method, params, on_done)
    end
  end)
end

--- Ask memd; on_done(err, result), err as a text for the user.
---
--- options.start: false where no daemon shall be started for it.
function M.request(method, params, on_done, options)
  local start = config.values.start and (options or {}).start ~= false
  on_done = vim.schedule_wrap(on_done) -- an error in it is its own, and costs no other request its answer
  local function try_once(tries)
    once(method, params, function(err, result, broken)
      if broken and READS[method] and tries > 1 then
        return vim.defer_fn(function()
          try_once(tries - 1)
        end, AGAIN_MS)
      end
      on_done(err, result)
    end, start)
  end
  try_once(TRIES)
end

--- Say whether somebody took our connection.
function M.is_open()
  return connection ~= nil
end

return M

-- What does memd do just now?
--
-- Follows its events; each is a hint that `status` is worth asking again. Never starts a daemon, and finds one
-- that was started later.

local client = require('memd.client')

local M = {}

-- Arbitrary: a storm of events costs five questions a second, of a millisecond each.
local REFRESH_MS = 200
local FIRST_RETRY_MS, LAST_RETRY_MS = 500, 5000 -- a try costs microseconds where nobody listens

M.following = false
M.known = nil -- the last answer of `status`; nil where there is none
M.fault = nil -- why there is none
M.changed = function() end -- whoever shows it sets this

local followed -- the connection that brings events
local retry_ms = FIRST_RETRY_MS
local refreshing, again = false, false

local function tell(err, answer)
  M.known, M.fault = answer, err
  M.changed()
  vim.cmd('redrawstatus!')
end

--- Ask again; at once, unless that was done a moment ago.
function M.refresh()
  if refreshing then
    again = true
    return
  end
  refreshing, again = true, false
  client.request('status', {}, function(err, answer)
    tell(err, answer)
    vim.defer_fn(function()
      refreshing = false
      if again then
        M.refresh()
      end
    end, REFRESH_MS)
  end, { start = false })
end

local connect

local function later(err)
  tell(err)
  vim.defer_fn(connect, retry_ms)
  retry_ms = math.min(2 * retry_ms, LAST_RETRY_MS)
end

local function subscribe(opened)
  if opened == followed then
    return
  end
  followed = opened
  client.request('subscribe', {}, function(err)
    if not err then
      retry_ms = FIRST_RETRY_MS
      M.refresh()
    elseif not opened.closed then -- else `closed` has seen to it
      followed = nil
      later(err)
    end
  end, { start = false })
end

connect = function()
  client.connect(false, function(err, opened)
    if opened then
      subscribe(opened)
    else
      later(err)
    end
  end)
end

--- Begin to follow what memd does, for as long as the editor lives.
function M.follow()
  if M.following then
    return
  end
  M.following = true
  client.opened, client.event = subscribe, M.refresh
  client.closed = function()
    later('memd: the connection is closed')
  end
  connect()
end

return M

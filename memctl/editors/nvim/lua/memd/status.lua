-- The state of memd, in a buffer and for a statusline. Both are what `memctl status --watch` says again and again: it
-- starts no daemon, and waits for one that is gone or hangs.

local client = require('memd.client')
local scratch = require('memd.scratch')

local M = {}

local NAME = 'memd://status'
local HEADING = '^%d+%-%d%d%-%d%d %d%d:%d%d:%d%d$' -- of each page
local AGAIN_MS = 5000 -- until memctl is run again where it could not be run, or was ended
local STATES = { dead = 'memd off', stuck = 'memd stuck', stopping = 'memd stopping' }

local is_followed = false
local known -- the last answer of `memctl status --json`; nil where there is none

--- Show all that memd says of itself in a scratch buffer that follows it until it is wiped out.
function M.open()
  local buffer, is_new = scratch.buffer(NAME, 'memd')
  scratch.show(buffer)
  if not is_new then
    return
  end
  local page, job = {}, nil
  local function write()
    if vim.api.nvim_buf_is_valid(buffer) then
      scratch.write(buffer, page)
    else
      pcall(vim.fn.jobstop, job)
    end
  end
  job = client.run({ 'status', '--watch' }, function(line)
    if line:match(HEADING) then
      page = {}
      vim.schedule(write) -- when the rest of what has come with this line is in it
    end
    page[#page + 1] = line
  end, function(err)
    page = { err }
    write()
  end)
end

local function follow()
  client.run({ 'status', '--json', '--watch' }, function(line)
    known = vim.json.decode(line)
    vim.cmd('redrawstatus!')
  end, function()
    known = nil
    vim.defer_fn(follow, AGAIN_MS)
  end)
end

--- Return a few words for a statusline: no disk, no socket, no waiting.
function M.line()
  if not is_followed then -- and not each time: an editor that redraws at each event would do nothing else
    is_followed = true
    vim.schedule(follow)
  end
  if not known or known.server.state then
    return known and STATES[known.server.state] or 'memd'
  end
  local name, workspaces = vim.api.nvim_buf_get_name(0), known.workspaces
  local found = #workspaces == 1 and workspaces[1] or nil
  for _, one in ipairs(workspaces) do
    found = vim.startswith(name, one.root .. '/') and one or found
  end
  local words = { 'memd', found and found.state }
  if found and (found.pending or 0) > 0 then
    words[#words + 1] = tostring(found.pending)
  end
  return table.concat(vim.list_extend(words, found and found.degraded or {}), ' ')
end

return M

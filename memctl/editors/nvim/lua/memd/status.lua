-- The state of memd, in a buffer and for a statusline. Both use the output of `memctl status --watch`, which starts no
-- daemon and waits for a daemon that has stopped or hangs.

local client = require('memd.client')
local scratch = require('memd.scratch')

local M = {}

local NAME = 'memd://status'
local HEADING = '^%d+%-%d%d%-%d%d %d%d:%d%d:%d%d$' -- of each page
local AGAIN_MS = 5000 -- until memctl is run again after it failed or ended
local STATES = { dead = 'memd off', stuck = 'memd stuck', stopping = 'memd stopping' }

local is_followed = false
local known -- the last answer of `memctl status --json`; nil without one

--- Show the status of memd in a scratch buffer that is kept up to date until it is wiped out.
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
      vim.schedule(write) -- after the other lines that arrived together with this one
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

--- Return a few words for a statusline, without access to disk or socket, and without waiting.
function M.line()
  if not is_followed then -- once only: running memctl at each redraw would keep the editor busy
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

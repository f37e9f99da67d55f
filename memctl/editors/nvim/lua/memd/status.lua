-- A few words for a statusline, from `memctl status --watch`, which starts no daemon and waits for none that hangs.

local M = {}

local AGAIN_MS = 5000 -- until memctl is run again after it failed or ended
local STATES = { dead = 'memd off', stuck = 'memd stuck', stopping = 'memd stopping' }

local is_followed = false
local known -- the last answer; nil without one

local function follow()
  local rest = ''
  local ok, job = pcall(vim.fn.jobstart, { require('memd').program(), 'status', '--json', '--watch' }, {
    on_stdout = function(_, parts)
      parts[1] = rest .. parts[1]
      rest = table.remove(parts)
      if #parts > 0 then
        known = vim.json.decode(parts[#parts])
        vim.cmd('redrawstatus!')
      end
    end,
    on_exit = function()
      known = nil
      vim.defer_fn(follow, AGAIN_MS)
    end,
  })
  if not ok or job <= 0 then
    vim.defer_fn(follow, AGAIN_MS)
  end
end

--- Return the words, without access to disk or socket, and without waiting.
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

-- Who starts the daemon where none runs? memctl does, as for itself; the editor goes on meanwhile.

local place = require('memd.place')

local M = {}

-- memctl gives a daemon 10 s to be ready; the rest is for memctl's own start on a loaded machine.
local START_TIMEOUT_MS = 15000

--- Run `memctl ping`; on_done(err) when a daemon answers it, or why none does.
function M.start(on_done)
  local memctl, said = place.memctl(), ''
  local ok, job = pcall(vim.fn.jobstart, { memctl, 'ping' }, {
    stderr_buffered = true,
    on_stderr = function(_, lines)
      said = vim.trim(table.concat(lines, ' '))
    end,
    on_exit = function(_, status)
      on_done(status ~= 0 and (said ~= '' and said or ('%s ping ended with %d'):format(memctl, status)) or nil)
    end,
  })
  if not ok or job <= 0 then
    return on_done(("memd: no daemon runs, and '%s' can't be run to start one: see :help memd-memctl"):format(memctl))
  end
  vim.defer_fn(function()
    pcall(vim.fn.jobstop, job)
  end, START_TIMEOUT_MS)
end

return M

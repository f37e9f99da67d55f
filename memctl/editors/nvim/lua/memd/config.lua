-- What may a user set?

local M = {}

local KINDS = {
  timeout_ms = 'number',
  start = 'boolean',
  memctl = 'string',
  workspace = 'string',
  limit = 'number',
  budget_tokens = 'number',
  open = 'string',
}

M.values = {
  timeout_ms = 5000, -- memd's own limit for a search
  start = true, -- start a daemon where none runs
  memctl = nil, -- the program that starts it; by default the one this plugin came with
  workspace = nil, -- a folder; by default that of the buffer, see place.lua
  limit = nil, -- hits; by default as many as the workspace's config.toml says
  budget_tokens = nil, -- of :MemRecall; memd's default is 2000
  open = 'botright copen', -- what shows the quickfix list
}

--- Take over what is set in *given*; an error names what can't be.
function M.set(given)
  for name, value in pairs(given or {}) do
    if not KINDS[name] then
      local names = vim.tbl_keys(KINDS)
      table.sort(names)
      error(("memd: there is no option '%s'; there are %s"):format(name, table.concat(names, ', ')), 0)
    end
    if type(value) ~= KINDS[name] then
      error(('memd: %s must be a %s, not %s'):format(name, KINDS[name], vim.inspect(value)), 0)
    end
    if KINDS[name] == 'number' and (value < 1 or value % 1 ~= 0) then
      error(('memd: %s must be a whole number from 1, not %s'):format(name, value), 0)
    end
  end
  M.values = vim.tbl_extend('force', M.values, given or {})
end

return M

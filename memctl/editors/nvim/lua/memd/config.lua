-- The user's settings.

local M = {}

local KINDS = {}
for kind, names in pairs({ number = 'timeout_ms limit budget_tokens', boolean = 'start', string = 'memctl workspace open' }) do
  for name in names:gmatch('%S+') do
    KINDS[name] = kind
  end
end

-- The defaults; :help memd-options explains each setting, also those without a default.
M.values = { timeout_ms = 5000, start = true, open = 'botright copen' }

--- Apply the settings in *given*; raise an error for an unknown name or a wrong type.
function M.set(given)
  for name, value in pairs(given or {}) do
    local kind = KINDS[name]
    if not kind then
      local names = vim.tbl_keys(KINDS)
      table.sort(names)
      error(("memd: there is no option '%s'; there are %s"):format(name, table.concat(names, ', ')), 0)
    elseif type(value) ~= kind then
      error(('memd: %s must be a %s, not %s'):format(name, kind, vim.inspect(value)), 0)
    elseif kind == 'number' and (value < 1 or value % 1 ~= 0) then
      error(('memd: %s must be a whole number from 1, not %s'):format(name, value), 0)
    end
  end
  M.values = vim.tbl_extend('force', M.values, given or {})
end

return M

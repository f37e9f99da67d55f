-- The workspace of the current buffer.

local config = require('memd.config')

local uv = vim.uv or vim.loop

local M = {}

-- The nearest initialised folder at or above this one.
local function root_above(folder)
  while not uv.fs_stat(folder .. '/memory/config.toml') do
    local inner = folder
    folder = vim.fn.fnamemodify(inner, ':h')
    if folder == inner then
      return nil
    end
  end
  return folder
end

-- The workspace of the hits that the quickfix window shows.
local function of_quickfix()
  local context = vim.bo.buftype == 'quickfix' and vim.fn.getqflist({ context = 0 }).context
  return type(context) == 'table' and type(context.memd) == 'table' and context.memd.workspace or nil
end

--- Return a folder in the workspace of the current buffer; nil lets memd choose.
function M.of_buffer()
  local named = vim.b.memd_workspace or of_quickfix() or config.values.workspace or vim.env.MEMD_WORKSPACE
  if named and named ~= '' then
    return (vim.fn.fnamemodify(named, ':p'):gsub('(.)/+$', '%1'))
  end
  local name, cwd = vim.api.nvim_buf_get_name(0), uv.cwd()
  local is_file = vim.bo.buftype == '' and name ~= '' and not name:match('^%a[%w+.-]*://')
  return is_file and root_above(vim.fn.fnamemodify(name, ':p:h')) or cwd and root_above(cwd) or nil
end

return M

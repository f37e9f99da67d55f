-- Completion of a query while it is typed: the filters, and the folders and files after path:

local filters = require('memd.filters')
local workspace = require('memd.workspace')

local M = {}

local MOST_NAMES = 1000 -- in one folder; arbitrary: a longer list is of no use

-- The names in a folder of the workspace, each after the typed text; folders end with "/".
local function names_in(folder, typed)
  local names, ok, found = {}, pcall(vim.fn.readdir, folder)
  for _, name in ipairs(ok and found or {}) do
    -- A filter with a space needs quotes, but Neovim completes only one word.
    if name:sub(1, 1) ~= '.' and not name:find('%s') and #names < MOST_NAMES then
      names[#names + 1] = typed .. name .. (vim.fn.isdirectory(folder .. name) == 1 and '/' or '')
    end
  end
  return names
end

--- Return the completions of the typed word.
function M.words(typed)
  local candidates, root = {}, workspace.of_buffer()
  for _, filter in ipairs(filters) do
    local prefix = filter.key .. ':'
    if not vim.startswith(typed, prefix) then
      candidates[#candidates + 1] = prefix
    elseif filter.completes == 'paths' and root then
      local folder = typed:sub(#prefix + 1):match('.*/') or ''
      vim.list_extend(candidates, names_in(('%s/%s'):format(root, folder), prefix .. folder))
    end
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, typed)
  end, candidates)
end

return M

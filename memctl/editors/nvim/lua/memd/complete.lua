-- Completion of a query that is being typed: the filters, and the folders behind path:

local filters = require('memd.filters')
local place = require('memd.place')

local uv = vim.uv or vim.loop

local M = {}

local MOST_NAMES = 1000 -- of one folder; arbitrary: a longer list helps nobody

-- What is in one folder of the workspace, behind a filter's key, folders with "/" behind.
local function names_in(root, key, folder)
  local names = {}
  local scan = root and uv.fs_scandir(('%s/%s'):format(root, folder))
  while scan and #names < MOST_NAMES do
    local name, kind = uv.fs_scandir_next(scan)
    if not name then
      break
    end
    -- A filter with a space in it needs quotes, and Neovim completes one word.
    if name:sub(1, 1) ~= '.' and not name:find('%s') then
      names[#names + 1] = ('%s:%s%s%s'):format(key, folder, name, kind == 'directory' and '/' or '')
    end
  end
  table.sort(names)
  return names
end

--- Return the ways to go on with the word that was typed.
function M.words(typed)
  local candidates = {}
  for _, filter in ipairs(filters) do
    local value = typed:match('^' .. filter.key .. ':(.*)')
    if value and filter.completes == 'paths' then
      vim.list_extend(candidates, names_in(place.workspace(), filter.key, value:match('.*/') or ''))
    elseif not value then
      candidates[#candidates + 1] = filter.key .. ':'
    end
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, typed)
  end, candidates)
end

return M

-- What may follow in a query that is being typed? The filters, and the folders behind path:

local place = require('memd.place')

local uv = vim.uv or vim.loop

local M = {}

local FILTERS = { 'path:', 'tag:', 'since:', 'until:' }
local MOST_NAMES = 1000 -- of one folder; arbitrary: a longer list helps nobody

-- What is in one folder of the workspace, folders with "/" behind.
local function names_in(root, folder)
  local names = {}
  local scan = root and uv.fs_scandir(('%s/%s'):format(root, folder))
  while scan and #names < MOST_NAMES do
    local name, kind = uv.fs_scandir_next(scan)
    if not name then
      break
    end
    -- A filter with a space in it needs quotes, and Neovim completes one word.
    if name:sub(1, 1) ~= '.' and not name:find('%s') then
      names[#names + 1] = ('path:%s%s%s'):format(folder, name, kind == 'directory' and '/' or '')
    end
  end
  table.sort(names)
  return names
end

--- Return the ways to go on with the word that was typed.
function M.words(typed)
  local folder = typed:match('^path:(.*/)') or ''
  local candidates = vim.startswith(typed, 'path:') and names_in(place.workspace(), folder) or FILTERS
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, typed)
  end, candidates)
end

return M

-- How do hits get into the quickfix list?

local config = require('memd.config')

local M = {}

local NEARLY_ALL = 0.99 -- of the chunks can be found by meaning: too few are missing to speak of

-- A field of an answer; nil for what is there and empty.
local function value(field)
  if field == vim.NIL or field == '' then
    return nil
  end
  return field
end

local function text_of(hit)
  local said = value(hit.match_text) or vim.trim(hit.snippet):match('^[^\n]*')
  -- In an entry a line break would look like another one.
  return ('%.2f  %s'):format(hit.score, (said:gsub('%c', ' ')))
end

--- Return the entries for the hits of an answer.
function M.items(answer)
  local items = {}
  for _, hit in ipairs(answer.hits) do
    items[#items + 1] = {
      filename = answer.workspace .. '/' .. hit.path,
      lnum = value(hit.match_line) or hit.start_line,
      col = value(hit.match_column) or 1,
      text = text_of(hit),
      user_data = hit, -- Neovim keeps it from 0.10 on
    }
  end
  return items
end

--- Return in words how an answer is not what one might take it for; nil where it is.
function M.caveats(answer)
  local said, index = {}, answer.index
  local also = {}
  for typed, term in pairs(answer.corrected or {}) do
    also[#also + 1] = ('%s (%s)'):format(term, typed)
  end
  if #also > 0 then
    table.sort(also)
    said[1] = 'also for ' .. table.concat(also, ', ')
  end
  if #(answer.without or {}) > 0 then
    said[#said + 1] = 'without ' .. table.concat(answer.without, ', ')
  end
  if answer.confidence == 'none' and #answer.hits > 0 then
    said[#said + 1] = 'no good match, only the nearest'
  end
  if #answer.degraded > 0 then
    said[#said + 1] = (answer.mode == 'keyword' and 'words only: ' or '') .. table.concat(answer.degraded, ', ')
  end
  if index.first_words then
    said[#said + 1] = ('the first index is not complete: %d to go'):format(index.pending)
  elseif index.pending_files > 0 then
    said[#said + 1] = ('%d files still to be read'):format(index.pending_files)
  elseif answer.mode ~= 'keyword' and (value(index.embedded) or 1) < NEARLY_ALL then
    said[#said + 1] = ('meaning: %d %% of the notes'):format(index.embedded * 100)
  end
  return #said > 0 and table.concat(said, '; ') or nil
end

--- Make the answer the quickfix list.
function M.fill(answer, query)
  local caveats = M.caveats(answer)
  vim.fn.setqflist({}, ' ', {
    title = ('memd: %s%s'):format(query, caveats and (' (%s)'):format(caveats) or ''),
    items = M.items(answer),
    context = { memd = { workspace = answer.workspace, query = query, confidence = answer.confidence } },
  })
end

--- Show the list, or its first entry.
function M.open(jump)
  vim.cmd(jump and 'cfirst' or config.values.open)
end

return M

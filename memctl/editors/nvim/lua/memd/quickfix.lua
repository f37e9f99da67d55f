-- Hits in the quickfix list.

local M = {}

local NEARLY_ALL = 0.99 -- share of embedded chunks above which the missing ones are not mentioned

-- A field of an answer; nil if it is null or empty.
local function value(field)
  return field ~= vim.NIL and field ~= '' and field or nil
end

--- Return the caveats of an answer in words; '' if there are none.
function M.caveats(answer)
  local said, also, index = {}, {}, answer.index
  local function say(format, ...)
    said[#said + 1] = format:format(...)
  end
  for typed, term in pairs(answer.corrected or {}) do
    also[#also + 1] = ('%s (%s)'):format(term, typed)
  end
  if #also > 0 then
    table.sort(also)
    say('also for %s', table.concat(also, ', '))
  end
  if #(answer.without or {}) > 0 then
    say('without %s', table.concat(answer.without, ', '))
  end
  if answer.confidence == 'none' and #answer.hits > 0 then
    say('no good match, only the closest hits')
  end
  if #answer.degraded > 0 then
    say('%s%s', answer.mode == 'keyword' and 'words only: ' or '', table.concat(answer.degraded, ', '))
  end
  if index.first_words then
    say('the first index is not complete: %d to go', index.pending)
  elseif index.pending_files > 0 then
    say('%d files still to be read', index.pending_files)
  elseif answer.mode ~= 'keyword' and (value(index.embedded) or 1) < NEARLY_ALL then
    say('meaning: %d %% of the notes', index.embedded * 100)
  end
  return #said > 0 and (' (%s)'):format(table.concat(said, '; ')) or ''
end

--- Fill the quickfix list with the hits of an answer.
function M.fill(answer, query)
  local items = vim.tbl_map(function(hit)
    local text = value(hit.match_text) or vim.trim(hit.snippet):match('^[^\n]*')
    return {
      filename = answer.workspace .. '/' .. hit.path,
      lnum = value(hit.match_line) or hit.start_line,
      col = value(hit.match_column) or 1,
      text = ('%.2f  %s'):format(hit.score, (text:gsub('%c', ' '))), -- a line break would look like another entry
      user_data = hit, -- Neovim keeps it from 0.10 on
    }
  end, answer.hits)
  vim.fn.setqflist({}, ' ', {
    title = ('memd: %s%s'):format(query, M.caveats(answer)),
    items = items,
    context = { memd = { workspace = answer.workspace, query = query, confidence = answer.confidence } },
  })
end

return M

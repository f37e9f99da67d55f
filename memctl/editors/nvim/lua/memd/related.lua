-- A window with the notes nearest in meaning to the paragraph at the cursor, which it follows.

local memd = require('memd')

local M = {}

local DELAY_MS = 250 -- that the cursor rests
local WIDTH = 48

local buffer, window, group -- of the window that is open
local places = {} -- row → place
local asked, last = 0, nil

local function show(hits)
  local lines = {}
  places = {}
  for _, hit in ipairs(hits) do
    for _, line in ipairs({ hit.title, ('  %s:%d'):format(hit.path, hit.line), '  ' .. hit.text }) do
      lines[#lines + 1] = (line:gsub('%c', ' '))
      places[#lines] = hit
    end
  end
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, #lines > 0 and lines or { 'no related notes' })
  vim.bo[buffer].modifiable = false
end

local function follow()
  asked = asked + 1
  local number = asked
  vim.defer_fn(function()
    local here = vim.api.nvim_get_current_buf()
    if number ~= asked or not buffer or here == buffer or vim.bo[here].filetype ~= 'markdown' then
      return
    end
    local row = vim.fn.line('.') - 1
    local now = ('%d %d %d'):format(here, row, vim.b[here].changedtick)
    if now == last then
      return
    end
    last = now
    local at = { uri = vim.uri_from_bufnr(here), position = { line = row, character = 0 } }
    if vim.trim(vim.fn.getline('.')) == '' then
      return -- between paragraphs the last one's notes stay
    end
    memd.command('memd.related', at, function(answer)
      if number == asked and buffer then
        show(answer.hits)
      end
    end)
  end, DELAY_MS)
end

local function go()
  local place = places[vim.fn.line('.')]
  if place then
    vim.cmd('wincmd p')
    vim.cmd('edit ' .. vim.fn.fnameescape(vim.uri_to_fname(place.uri)))
    pcall(vim.api.nvim_win_set_cursor, 0, { place.line, 0 })
  end
end

--- Open the window, or close it.
function M.toggle()
  if buffer then
    return vim.api.nvim_buf_delete(buffer, { force = true }) -- also where it is in the last window
  end
  local before = vim.api.nvim_get_current_win()
  buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.cmd(('botright %dvsplit'):format(WIDTH))
  window = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(window, buffer)
  vim.wo[window].winfixwidth, vim.wo[window].wrap = true, false
  vim.wo[window].number, vim.wo[window].relativenumber = false, false
  vim.keymap.set('n', '<CR>', go, { buffer = buffer })
  group = vim.api.nvim_create_augroup('memd_related', {})
  vim.api.nvim_create_autocmd({ 'CursorMoved', 'CursorMovedI', 'BufEnter' }, { group = group, callback = follow })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = buffer,
    callback = function()
      buffer, last = nil, nil
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  vim.api.nvim_set_current_win(before)
  follow()
end

return M

-- A live search in floating windows: the words on top, the hits below, and the chosen hit in its note beside them.

local memd = require('memd')

local M = {}

local DELAY_MS = 60 -- from a key to the search; arbitrary: less than a pause between words
local WIDE = 100 -- columns from which the note is beside the hits
local ns = vim.api.nvim_create_namespace('memd')

local function window(buffer, title, row, col, width, height, focus)
  local config = { relative = 'editor', row = row, col = col, width = width, height = height, border = 'single' }
  config.style = 'minimal'
  if vim.fn.has('nvim-0.9') == 1 then
    config.title = title
  end
  return vim.api.nvim_open_win(buffer, focus, config)
end

local function scratch()
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  return buffer
end

--- Open the picker.
function M.open(words)
  local before = vim.api.nvim_get_current_win()
  local columns, lines = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  local width, height = math.max(20, math.floor(columns * 0.9)), math.max(9, math.floor(lines * 0.85))
  local row, col = math.floor((lines - height) / 2), math.floor((columns - width) / 2)
  local is_wide = columns >= WIDE
  local left = is_wide and math.floor(width / 2) or width
  local below = is_wide and height - 5 or math.floor((height - 7) / 2)
  local prompt, list, note = scratch(), scratch(), scratch()
  local shown = {
    window(list, ' notes ', row + 3, col, left - 2, below, false),
    is_wide and window(note, ' note ', row, col + left, width - left - 2, height - 2, false)
      or window(note, ' note ', row + below + 5, col, width - 2, height - below - 7, false),
    window(prompt, ' memd ', row, col, left - 2, 1, true),
  }
  vim.wo[shown[1]].cursorline, vim.wo[shown[1]].wrap = true, false
  local hits, chosen, asked, is_closed = {}, 1, 0, false

  local function close()
    if not is_closed then
      is_closed = true
      vim.cmd('stopinsert')
      for _, one in ipairs(shown) do
        pcall(vim.api.nvim_win_close, one, true)
      end
      if vim.api.nvim_win_is_valid(before) then
        vim.api.nvim_set_current_win(before)
      end
    end
  end

  local function preview()
    local hit = hits[chosen]
    vim.api.nvim_buf_clear_namespace(note, ns, 0, -1)
    local path = hit and vim.uri_to_fname(hit.location.uri)
    local open = path and vim.fn.bufnr(vim.fn.fnameescape(path)) or -1
    local ok, text = true, {}
    if open ~= -1 and vim.api.nvim_buf_is_loaded(open) then
      text = vim.api.nvim_buf_get_lines(open, 0, -1, false)
    elseif hit then
      ok, text = pcall(vim.fn.readfile, path, '', hit.location.range.start.line + height)
    end
    text = vim.tbl_map(function(line)
      return (line:gsub('[%z\n]', ' '))
    end, ok and text or {})
    vim.api.nvim_buf_set_lines(note, 0, -1, false, text)
    vim.bo[note].syntax = 'markdown'
    if hit and #text > 0 then
      local at = math.min(hit.location.range.start.line, #text - 1)
      vim.api.nvim_buf_add_highlight(note, ns, 'Visual', at, 0, -1)
      vim.api.nvim_win_set_cursor(shown[2], { at + 1, 0 })
      vim.api.nvim_win_set_cursor(shown[1], { chosen, 0 })
      vim.api.nvim_win_call(shown[2], function()
        vim.cmd('normal! zz')
      end)
    end
  end

  local function search()
    asked = asked + 1
    local number = asked
    vim.defer_fn(function()
      if is_closed or number ~= asked then
        return
      end
      local typed = vim.api.nvim_buf_get_lines(prompt, 0, 1, false)[1]
      memd.request('workspace/symbol', { query = typed }, function(answer)
        if is_closed or number ~= asked then
          return
        end
        hits, chosen = answer, 1
        vim.api.nvim_buf_set_lines(list, 0, -1, false, vim.tbl_map(function(hit)
          return ('%s:%d  %s'):format(hit.containerName, hit.location.range.start.line + 1, (hit.name:gsub('%c', ' ')))
        end, hits))
        preview()
      end)
    end, DELAY_MS)
  end

  local function move(by)
    return function()
      chosen = math.max(1, math.min(#hits, chosen + by))
      preview()
    end
  end

  local function entries()
    return vim.tbl_map(function(hit)
      local start = hit.location.range.start
      return { filename = vim.uri_to_fname(hit.location.uri), lnum = start.line + 1, col = 1, text = hit.name }
    end, hits)
  end

  local function open(how)
    return function()
      local entry = entries()[chosen]
      close()
      if entry then
        vim.cmd(("%s %s"):format(how, vim.fn.fnameescape(entry.filename)))
        pcall(vim.api.nvim_win_set_cursor, 0, { entry.lnum, 0 })
        vim.cmd('normal! ^zv')
      end
    end
  end

  for keys, act in pairs({
    ['<CR>'] = open('edit'), ['<C-x>'] = open('split'), ['<C-v>'] = open('vsplit'), ['<C-t>'] = open('tabedit'),
    ['<Esc>'] = close, ['<C-c>'] = close,
    ['<C-n>'] = move(1), ['<Down>'] = move(1), ['<C-p>'] = move(-1), ['<Up>'] = move(-1),
    ['<C-q>'] = function()
      vim.fn.setqflist({}, ' ', { title = 'memd', items = entries() })
      close()
      vim.cmd('botright copen')
    end,
  }) do
    vim.keymap.set({ 'i', 'n' }, keys, act, { buffer = prompt, nowait = true })
  end
  vim.api.nvim_create_autocmd({ 'TextChangedI', 'TextChanged', 'TextChangedP' }, { buffer = prompt, callback = search })
  vim.api.nvim_create_autocmd('BufLeave', { buffer = prompt, callback = close })
  vim.api.nvim_buf_set_lines(prompt, 0, -1, false, { words })
  vim.cmd('startinsert!')
  search()
end

return M

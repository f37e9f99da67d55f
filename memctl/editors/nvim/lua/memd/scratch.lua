-- Where does text go that is no file?

local M = {}

-- Not bufnr(): it takes the name for a pattern.
local function named(name)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buffer) == name then
      return buffer
    end
  end
end

local function made(name, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].bufhidden = 'hide'
  vim.bo[buffer].filetype = filetype
  return buffer
end

--- Put *text* into the scratch buffer of this name and return it.
function M.write(name, text, filetype)
  local buffer = named(name) or made(name, filetype)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n', { plain = true }))
  vim.bo[buffer].modifiable = false
  return buffer
end

--- Go to a window that shows *buffer*; one is split where there is none.
function M.show(buffer)
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    return vim.api.nvim_set_current_win(window)
  end
  vim.cmd('split')
  vim.api.nvim_win_set_buf(0, buffer)
end

return M

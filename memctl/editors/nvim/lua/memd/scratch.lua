-- Scratch buffers: text without a file.

local M = {}

--- Return the scratch buffer of this name, and whether it is new.
function M.buffer(name, filetype)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do -- not bufnr(), which treats the name as a pattern
    if vim.api.nvim_buf_get_name(buffer) == name then
      return buffer, false
    end
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].bufhidden = 'hide'
  vim.bo[buffer].filetype = filetype
  return buffer, true
end

--- Replace the buffer's text by *lines*.
function M.write(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
end

--- Go to a window that shows *buffer*, or split one.
function M.show(buffer)
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    return vim.api.nvim_set_current_win(window)
  end
  vim.cmd('split')
  vim.api.nvim_win_set_buf(0, buffer)
end

return M

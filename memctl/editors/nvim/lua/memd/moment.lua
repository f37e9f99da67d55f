-- Is the user still where the question was asked?
--
-- An answer may come while they type somewhere else: a window that opens then would take their keys.

local M = {}

--- Return a function that says whether the editor is where it is now, ready for a command.
function M.now()
  local window, buffer = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf()
  return function()
    return vim.fn.mode(1) == 'n'
      and vim.fn.getcmdwintype() == ''
      and vim.api.nvim_get_current_win() == window
      and vim.api.nvim_get_current_buf() == buffer
  end
end

return M

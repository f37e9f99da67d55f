-- The plugin's commands, and the language server for the Markdown files of workspaces.

if vim.g.loaded_memd or vim.fn.has('nvim-0.7') == 0 then
  return
end
vim.g.loaded_memd = true

local command = vim.api.nvim_create_user_command

command('Mem', function(call)
  require('memd.picker').open(call.args)
end, { nargs = '*', desc = 'Search the notes while you type' })

command('MemRelated', function()
  require('memd.related').toggle()
end, { desc = 'Show or close the window of related notes' })

command('MemAdd', function(call)
  require('memd').add(vim.api.nvim_buf_get_lines(0, call.line1 - 1, call.line2, false), call.args)
end, { nargs = '*', range = true, desc = 'Add lines to the memory, as an entry with this title' })

vim.api.nvim_create_autocmd('FileType', {
  pattern = 'markdown',
  callback = function(event)
    -- Nothing is loaded for Markdown outside of workspaces.
    local folder = vim.fn.fnamemodify(event.file, ':p:h')
    if vim.bo[event.buf].buftype == '' and vim.fn.findfile('memory/config.toml', vim.fn.fnameescape(folder) .. ';') ~= '' then
      require('memd').attach(event.buf)
    end
  end,
})

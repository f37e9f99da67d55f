-- The language server, for vim.lsp.enable('memd') of Neovim 0.11.

return { cmd = { require('memd.client').program(), 'lsp' }, filetypes = { 'markdown' } }

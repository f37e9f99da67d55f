-- The plugin's commands. Each loads its modules when it is first used.

if vim.g.loaded_memd or vim.fn.has('nvim-0.7') == 0 then
  return
end
vim.g.loaded_memd = true

local command = vim.api.nvim_create_user_command

local function complete(typed)
  return require('memd.complete').words(typed)
end

command('MemSearch', function(call)
  require('memd').search(call.args, { jump = call.bang })
end, { nargs = '+', bang = true, complete = complete, desc = 'Search the notes, hits in the quickfix list' })

command('MemNearest', function(call)
  require('memd').search(call.args, { nearest = true })
end, { nargs = '+', complete = complete, desc = 'Search the notes, even if none is a good match' })

command('MemRecall', function(call)
  require('memd').recall(call.args)
end, { nargs = '+', complete = complete, desc = 'Recall notes on a subject, in a scratch buffer' })

command('MemStatus', function()
  require('memd').status()
end, { desc = 'Show the status of memd, live' })

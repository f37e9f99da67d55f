-- The plugin's interface for the user's configuration and the commands.

local M = {}

local newest = {} -- method → number of its latest request

local function notify(text, ...)
  vim.notify(('memd: ' .. text):format(...), vim.log.levels.INFO, { title = 'memd' })
end

-- Return a function that tells whether the user is still in this window, in Normal mode: a window that opened while
-- they type elsewhere would receive their keys.
local function place()
  local window, buffer = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf()
  return function()
    return vim.fn.mode(1) == 'n'
      and vim.fn.getcmdwintype() == ''
      and vim.api.nvim_get_current_win() == window
      and vim.api.nvim_get_current_buf() == buffer
  end
end

-- Send a request, and call take(answer, is_nearest, still_here) with the answer to the latest one; is_nearest: there is no
-- good match, and options.nearest was not set.
local function ask(method, query, params, options, take)
  local still_here, number = place(), (newest[method] or 0) + 1
  newest[method] = number
  params.query, params.workspace = query, require('memd.workspace').of_buffer()
  M.request(method, params, function(err, answer)
    if number ~= newest[method] then
      return
    end
    if err then
      return vim.notify(err, vim.log.levels.ERROR, { title = 'memd' })
    end
    take(answer, answer.confidence == 'none' and not (options or {}).nearest, still_here)
  end)
end

--- Change the settings; see :help memd-options.
function M.setup(options)
  require('memd.config').set(options)
end

--- Call any method of memd without blocking: on_done(err, answer) is called in the main loop.
function M.request(method, params, on_done)
  require('memd.client').request(method, params, on_done)
end

--- Search, and show the hits in the quickfix list.
---
--- options.jump: go to the best hit instead; options.nearest: even if no hit is a good match.
function M.search(query, options)
  local values, quickfix = require('memd.config').values, require('memd.quickfix')
  ask('search', query, { limit = values.limit }, options, function(answer, is_nearest, still_here)
    if #answer.hits == 0 then
      return notify('no hits for %s%s', query, quickfix.caveats(answer))
    end
    if is_nearest then
      return notify('no good match for %s (:MemNearest shows the closest hits)', query)
    end
    quickfix.fill(answer, query)
    if not still_here() then
      return notify('%d found for %s, see the quickfix list (:copen)', #answer.hits, query)
    end
    local opened, reason = pcall(vim.cmd, options and options.jump and 'cfirst' or values.open)
    if not opened then -- for example, the buffer has changes and 'hidden' is off
      vim.notify('memd: ' .. reason, vim.log.levels.ERROR, { title = 'memd' })
    end
  end)
end

--- Show notes on a subject, as recalled for a prompt, in a scratch buffer.
---
--- options.nearest: even if no note is a good match.
function M.recall(query, options)
  local params = { budget_tokens = require('memd.config').values.budget_tokens }
  ask('recall', query, params, options, function(answer, is_nearest, still_here)
    if answer.text == '' then
      return notify('nothing is known about %s', query)
    end
    if is_nearest and #answer.sources > 0 then
      return notify('nothing is known about %s: no note is a good match', query)
    end
    local scratch = require('memd.scratch')
    local buffer = scratch.buffer('memd://recall', 'markdown')
    scratch.write(buffer, vim.split(answer.text, '\n', { plain = true }))
    vim.b[buffer].memd_workspace = answer.workspace
    vim.bo[buffer].path = vim.fn.escape(answer.workspace, ' ,\\') -- gf on a source finds it
    if not still_here() then
      return notify('what is known about %s is in the buffer memd://recall', query)
    end
    scratch.show(buffer)
  end)
end

--- Show the status of memd in a scratch buffer that is kept up to date.
function M.status()
  require('memd.status').open()
end

--- Return a few words about memd for a statusline, without waiting.
function M.statusline()
  return require('memd.status').line()
end

return M

-- What can a user's configuration and the commands ask for? The whole of the plugin's interface.

local M = {}

local searches, recalls = 0, 0

local function notify(text, level)
  vim.notify(text, level or vim.log.levels.INFO, { title = 'memd' })
end

local function fail(err)
  notify(err, vim.log.levels.ERROR)
end

--- Change what is set by default; see :help memd-options.
function M.setup(options)
  require('memd.config').set(options)
end

--- Ask memd anything: on_done(err, answer) is called in the main loop, and nothing waits for it.
function M.request(method, params, on_done)
  require('memd.client').request(method, params, on_done)
end

local function asked(query)
  local values = require('memd.config').values
  return { query = query, workspace = require('memd.place').workspace(), limit = values.limit }
end

-- Whether an answer has hits and none of them is a good match.
local function is_nearest(answer)
  return answer.confidence == 'none' and #(answer.hits or answer.sources) > 0
end

local NO_GOOD_MATCH = 'memd: no good match for %s (:MemNearest shows the nearest there is)'

--- Search, and show the hits in the quickfix list.
---
--- options.jump: go to the best one instead; options.nearest: also where no hit is a good match.
function M.search(query, options)
  local still_here = require('memd.moment').now()
  searches = searches + 1
  local number = searches
  M.request('search', asked(query), function(err, answer)
    if number ~= searches then
      return -- another search was asked for since
    end
    if err then
      return fail(err)
    end
    if #answer.hits == 0 then
      local caveats = require('memd.quickfix').caveats(answer)
      return notify(('memd: no hits for %s%s'):format(query, caveats and (' (%s)'):format(caveats) or ''))
    end
    if is_nearest(answer) and not (options and options.nearest) then
      return notify(NO_GOOD_MATCH:format(query))
    end
    require('memd.quickfix').fill(answer, query)
    if not still_here() then
      return notify(('memd: %d found for %s, see the quickfix list (:copen)'):format(#answer.hits, query))
    end
    local opened, reason = pcall(require('memd.quickfix').open, options and options.jump)
    if not opened then -- as where the buffer has changes and 'hidden' is off
      fail('memd: ' .. reason)
    end
  end)
end

--- Show what the notes say about something, as a prompt would get it, in a scratch buffer.
---
--- options.nearest: also where none of it is a good match.
function M.recall(query, options)
  local still_here = require('memd.moment').now()
  recalls = recalls + 1
  local number = recalls
  local params = asked(query)
  params.limit = nil
  params.budget_tokens = require('memd.config').values.budget_tokens
  M.request('recall', params, function(err, answer)
    if number ~= recalls then
      return
    end
    if err then
      return fail(err)
    end
    if answer.text == '' then
      return notify('memd: nothing is known about ' .. query)
    end
    if is_nearest(answer) and not (options and options.nearest) then
      return notify(('memd: nothing is known about %s: no note is a good match'):format(query))
    end
    local scratch = require('memd.scratch')
    local buffer = scratch.write('memd://recall', answer.text, 'markdown')
    vim.b[buffer].memd_workspace = answer.workspace
    vim.bo[buffer].path = vim.fn.escape(answer.workspace, ' ,\\') -- gf on a source finds it
    if not still_here() then
      return notify('memd: what is known about ' .. query .. ' is in the buffer memd://recall')
    end
    scratch.show(buffer)
  end)
end

--- Show what memd knows and does, in a scratch buffer that follows it.
function M.status()
  require('memd.scratch').show(require('memd.board').buffer())
end

--- Return a few words about memd for a statusline; costs nothing.
function M.statusline()
  return require('memd.board').statusline()
end

return M

-- The live search as a source of the pickers Telescope, fzf-lua and snacks. Each runs memctl anew for what is typed.

local M = {}

local function command(words)
  return { require('memd').program(), 'search', '--vimgrep', '--limit', '50', '--', words }
end

--- Return the hit of a line of `memctl search --vimgrep`; nil if it is none.
function M.hit(line)
  local path, lnum, col, text = line:match('^(.-):(%d+):(%d+):(.*)$')
  return path and { filename = path, lnum = tonumber(lnum), col = tonumber(col), text = text }
end

function M.telescope()
  local finder = require('telescope.finders').new_job(function(words)
    return words ~= '' and command(words) or nil
  end, function(line)
    local hit = M.hit(line)
    return hit and vim.tbl_extend('error', hit, { value = line, ordinal = line, display = line, path = hit.filename })
  end)
  local previewer = require('telescope.config').values.grep_previewer({})
  require('telescope.pickers').new({}, { prompt_title = 'Notes', finder = finder, previewer = previewer }):find()
end

function M.fzf_lua()
  local fzf = require('fzf-lua')
  fzf.fzf_live(function(words) -- a list of them since 2025
    return table.concat(vim.tbl_map(vim.fn.shellescape, command(type(words) == 'table' and words[1] or words or '')), ' ')
  end, { prompt = 'Notes> ', previewer = 'builtin', actions = fzf.defaults.actions.files })
end

function M.snacks()
  local function find(_, ctx)
    local words = command(ctx.filter.search)
    local job = { cmd = table.remove(words, 1), args = words, notify = false }
    function job.transform(item)
      local hit = M.hit(item.text)
      if not hit then
        return false
      end
      item.file, item.line, item.pos = hit.filename, hit.text, { hit.lnum, hit.col - 1 }
    end
    return require('snacks.picker.source.proc').proc(job, ctx)
  end
  require('snacks').picker.pick({ title = 'Notes', finder = find, live = true, supports_live = true, format = 'file' })
end

return M

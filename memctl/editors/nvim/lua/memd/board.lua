-- How does what memd does look, in a buffer and in a statusline?

local client = require('memd.client')
local scratch = require('memd.scratch')
local status = require('memd.status')

local M = {}

local NAME = 'memd://status'

local function server_lines(server)
  local lines = { ('memd %s, process %d'):format(server.version, server.pid) }
  for _, model in ipairs(server.models) do
    local id = model.id ~= vim.NIL and model.id or model.provider
    local trouble = model.error ~= vim.NIL and (': ' .. model.error) or ''
    lines[#lines + 1] = ('model %s: %s%s'):format(id, model.state, trouble)
  end
  return lines
end

local function workspace_lines(one)
  local lines = { '', one.root }
  local function say(format, ...)
    lines[#lines + 1] = '  ' .. format:format(...)
  end
  say('%s', one.state)
  if one.sources then -- else it is not open
    say('%d sources, %d chunks, %d vectors', one.sources, one.chunks, one.vectors)
    say('%d files to read, %d chunks to embed', one.pending_files, one.pending_vectors)
    if #one.degraded > 0 then
      say('degraded: %s', table.concat(one.degraded, ', '))
    end
    for _, skipped in ipairs(one.skipped) do
      say('skipped %s: %s', skipped.path, skipped.reason)
    end
  end
  for _, err in ipairs(one.errors) do
    say('%s', err)
  end
  return lines
end

local function text()
  local known = status.known
  if not known then
    return status.fault or 'memd: connecting'
  end
  local lines = server_lines(known.server)
  for _, one in ipairs(known.workspaces) do
    vim.list_extend(lines, workspace_lines(one))
  end
  return table.concat(lines, '\n')
end

--- Return the scratch buffer that shows all that memd says of itself, now and from now on.
function M.buffer()
  local buffer = scratch.write(NAME, text(), 'memd')
  status.changed = function()
    if vim.api.nvim_buf_is_valid(buffer) then
      scratch.write(NAME, text(), 'memd')
    end
  end
  status.follow()
  status.refresh()
  return buffer
end

local function workspace_of(path, workspaces)
  local found = #workspaces == 1 and workspaces[1] or nil
  for _, one in ipairs(workspaces) do
    if vim.startswith(path, one.root .. '/') then
      found = one
    end
  end
  return found
end

--- Return a few words for a statusline: no disk, no socket, no waiting.
function M.statusline()
  if not status.following then -- and not each time: an editor that redraws at each event would do nothing else
    vim.schedule(status.follow)
  end
  if not status.known then
    return client.is_open() and status.fault and 'memd stuck' or 'memd off'
  end
  local one = workspace_of(vim.api.nvim_buf_get_name(0), status.known.workspaces)
  if not one then
    return 'memd'
  end
  local words = { 'memd', one.state }
  if (one.pending or 0) > 0 then
    words[#words + 1] = tostring(one.pending)
  end
  return table.concat(vim.list_extend(words, one.degraded or {}), ' ')
end

return M

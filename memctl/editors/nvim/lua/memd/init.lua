-- One `memctl lsp` for all buffers, and requests to it. Nothing here blocks.

local M = {}

local uv = vim.uv or vim.loop
local is_new = vim.fn.has('nvim-0.11') == 1 -- where the functions of before are deprecated

local options = { settings = {} }
local id -- of the client
local waiting = {} -- what is asked before the server is ready; nil: it is

--- Say something to the user.
function M.notify(text, level)
  vim.notify('memd: ' .. text, level or vim.log.levels.INFO, { title = 'memd' })
end

--- Change the settings; see :help memd-options.
function M.setup(given)
  for name, value in pairs(given or {}) do
    local kind = ({ memctl = 'string', workspace = 'string', settings = 'table' })[name]
    if type(value) ~= kind then
      local fault = kind and ('%s must be a %s'):format(name, kind) or ("there is no option '%s'"):format(name)
      error(('memd: %s; there are memctl, workspace, settings'):format(fault), 0)
    end
    options[name] = value
  end
end

--- Return the memctl of the installation that this file is part of, or the one on the PATH.
function M.program()
  if options.memctl then
    return vim.fn.expand(options.memctl)
  end
  local here = debug.getinfo(1, 'S').source:sub(2)
  local prefix = (uv.fs_realpath(here) or here):match('^(.*)/lib/python[^/]*/%a+%-packages/memctl/')
  local script = prefix and prefix .. '/bin/memctl'
  return script and vim.fn.executable(script) == 1 and script or 'memctl'
end

local function attached(client, buffer)
  if vim.lsp.completion and client:supports_method('textDocument/completion') then
    vim.lsp.completion.enable(true, client.id, buffer, { autotrigger = true })
  elseif vim.fn.has('nvim-0.8') == 0 then -- which sets it by itself
    vim.bo[buffer].omnifunc = 'v:lua.vim.lsp.omnifunc'
  end
end

-- Return the client, which is started if none runs.
local function client()
  if id and vim.lsp.get_client_by_id(id) then
    return vim.lsp.get_client_by_id(id)
  end
  if vim.fn.executable(M.program()) == 0 then
    return M.notify(("'%s' can't be run: see :help memd-memctl"):format(M.program()), vim.log.levels.ERROR)
  end
  waiting = {}
  local config = {
    name = 'memd',
    cmd = { M.program(), 'lsp' },
    root_dir = options.workspace and vim.fn.fnamemodify(vim.fn.expand(options.workspace), ':p') or uv.cwd(),
    init_options = options.settings,
    on_attach = attached,
    on_init = function()
      local asked = waiting
      waiting = nil
      for _, ask in ipairs(asked) do
        ask()
      end
    end,
    on_exit = function()
      id = nil
    end,
  }
  id = is_new and vim.lsp.start(config, { attach = false }) or vim.lsp.start_client(config)
  return id and vim.lsp.get_client_by_id(id)
end

--- Attach the server to a buffer.
function M.attach(buffer)
  if client() then
    vim.lsp.buf_attach_client(buffer, id)
  end
end

--- Send a request; on_done(answer) is called in the main loop, and not for an error, which is told.
function M.request(method, params, on_done)
  local asked = client()
  local function ask()
    local function done(fault, answer)
      if fault then
        M.notify(fault.message, vim.log.levels.ERROR)
      elseif answer then
        on_done(answer)
      end
    end
    if is_new then
      asked:request(method, params, done)
    else
      asked.request(method, params, done, 0)
    end
  end
  if asked and waiting then
    waiting[#waiting + 1] = ask
  elseif asked then
    ask()
  end
end

--- Call a command of the server, such as memd.recall; see docs/editors.md.
function M.command(name, given, on_done)
  M.request('workspace/executeCommand', { command = name, arguments = { given } }, on_done or function() end)
end

--- Add lines to the memory.
function M.add(lines, title)
  local given = { text = table.concat(lines, '\n'), uri = vim.uri_from_bufnr(0) }
  given.title = title ~= '' and title or nil
  M.command('memd.add', given) -- the server says what it has added
end

--- Return a few words about memd for a statusline, without waiting.
function M.statusline()
  return require('memd.status').line()
end

return M

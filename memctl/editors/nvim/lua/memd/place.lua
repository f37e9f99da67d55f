-- Where does memd listen, which workspace is meant, and which memctl is ours?
--
-- Says of the environment and the disk what memctl/paths.py and memctl/workspaces.py say of them.

local config = require('memd.config')

local uv = vim.uv or vim.loop

local M = {}

-- A longer one is cut by the system without a word, and names another socket.
local MAX_SOCKET_PATH_BYTES = 103

local function absolute(name)
  local value = vim.env[name]
  return value and value:sub(1, 1) == '/' and value or nil
end

local function runtime_dir()
  local runtime = absolute('XDG_RUNTIME_DIR')
  if runtime then
    return runtime .. '/memd'
  end
  return ('%s/memd-%d'):format(absolute('TMPDIR') or '/tmp', uv.getuid())
end

-- In a folder that others may write, somebody else could be listening.
local function is_private(folder)
  local found = uv.fs_lstat(folder)
  if not found then
    return true -- nobody listens there
  end
  return found.type == 'directory' and found.uid == uv.getuid() and found.mode % 64 == 0
end

--- Return the path of the socket that memctl would use; nil and the reason where there can be none.
function M.socket()
  local named, folder = vim.env.MEMD_SOCKET, runtime_dir()
  local path = folder .. '/memd.sock'
  if named and named ~= '' then
    path = named:sub(1, 1) == '/' and named or (uv.cwd() .. '/' .. named)
  end
  if #path > MAX_SOCKET_PATH_BYTES then
    return nil, ("memd: the socket's path has %d bytes, %d are possible: %s"):format(#path, MAX_SOCKET_PATH_BYTES, path)
  end
  if vim.fn.fnamemodify(path, ':h') == folder and not is_private(folder) then
    return nil, ('memd: %s is not a folder of yours alone; memctl ping says how to mend that'):format(folder)
  end
  return path
end

local function state_dir()
  local state = absolute('XDG_STATE_HOME')
  if state then
    return state .. '/memd'
  end
  local home = uv.os_homedir() or ''
  return home .. (uv.os_uname().sysname == 'Darwin' and '/Library/Application Support/memd' or '/.local/state/memd')
end

--- Return the socket that the lock of the state directory names, where it is another one than ours; nil else.
---
--- A daemon that was started with another XDG_RUNTIME_DIR listens there.
function M.elsewhere()
  local lock = state_dir() .. '/lock'
  local found = uv.fs_lstat(lock)
  if (vim.env.MEMD_SOCKET or '') ~= '' or not found or found.type ~= 'file' or not is_private(state_dir()) then
    return nil
  end
  local file = io.open(lock, 'rb')
  local said = file and file:read(1024) or ''
  if file then
    file:close()
  end
  local path = ('\n' .. said):match('\nsocket (/[^\n]+)\n')
  if not path or #path > MAX_SOCKET_PATH_BYTES or said:find('\nstopping\n', 1, true) then
    return nil
  end
  local folder = vim.fn.fnamemodify(path, ':h')
  return path ~= M.socket() and uv.fs_lstat(folder) and is_private(folder) and path or nil
end

-- The nearest folder, from this one upwards, that was initialised.
local function root_above(folder)
  while true do
    local found = uv.fs_stat(folder .. '/memory/config.toml')
    if found and found.type == 'file' then
      return folder
    end
    local parent = vim.fn.fnamemodify(folder, ':h')
    if parent == folder then
      return nil
    end
    folder = parent
  end
end

-- The workspace of the hits that the quickfix window shows.
local function of_quickfix()
  if vim.bo.buftype ~= 'quickfix' then
    return nil
  end
  local context = vim.fn.getqflist({ context = 0 }).context
  return type(context) == 'table' and type(context.memd) == 'table' and context.memd.workspace or nil
end

local function buffer_folder()
  local name = vim.api.nvim_buf_get_name(0)
  if vim.bo.buftype ~= '' or name == '' or name:match('^%a[%w+.-]*://') then
    return nil
  end
  return vim.fn.fnamemodify(name, ':p:h')
end

--- Return a folder in the workspace that is meant in the current buffer; nil leaves the choice to memd.
function M.workspace()
  local named = vim.b.memd_workspace or of_quickfix() or config.values.workspace or vim.env.MEMD_WORKSPACE
  if named and named ~= '' then
    return (vim.fn.fnamemodify(named, ':p'):gsub('(.)/+$', '%1'))
  end
  local folder, cwd = buffer_folder(), uv.cwd()
  return folder and root_above(folder) or cwd and root_above(cwd) or nil
end

--- Return the memctl that starts the daemon: the one of the installation that this file is part of, else PATH's.
function M.memctl()
  if config.values.memctl then
    return vim.fn.expand(config.values.memctl)
  end
  local here = debug.getinfo(1, 'S').source:sub(2)
  local prefix = (uv.fs_realpath(here) or here):match('^(.*)/lib/python[^/]*/%a+%-packages/memctl/')
  local script = prefix and prefix .. '/bin/memctl'
  return script and vim.fn.executable(script) == 1 and script or 'memctl'
end

return M

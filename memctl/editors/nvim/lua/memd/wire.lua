-- What travels between Neovim and memd? MessagePack-RPC: messages become bytes, and bytes messages.
--
-- Knows no socket and no clock. memctl/protocol.py is the same for Python, and has the reasons for the limits.

local M = {}

M.RESPONSE, M.NOTIFICATION = 1, 2

local MAX_REQUEST_BYTES = 1024 * 1024 -- memd drops the connection over a longer one
local MAX_ANSWER_BYTES = 8 * 1024 * 1024

--- Return the bytes of a call; nil and the reason where memd would not take it.
function M.request(id, method, params)
  local ok, frame = pcall(vim.mpack.encode, { 0, id, method, { params } })
  if not ok then
    return nil, ("memd: %s can't be sent: %s"):format(method, frame)
  end
  if #frame > MAX_REQUEST_BYTES then
    return nil, ("memd: %s can't be sent: it has %d bytes, %d are allowed"):format(method, #frame, MAX_REQUEST_BYTES)
  end
  return frame
end

local function is_message(value)
  if type(value) ~= 'table' then
    return false
  end
  local kind, second = value[1], value[2]
  return kind == M.RESPONSE and type(second) == 'number' or kind == M.NOTIFICATION and type(second) == 'string'
end

--- Return a function that takes bytes as they come and returns the messages that they complete.
---
--- It returns nil and the reason where the bytes are no messages: then the connection must be dropped.
--- May run outside of the main loop.
function M.reader()
  -- Decodes piece by piece. vim.mpack.decode would begin anew with every piece of a long answer.
  local unpack, unfinished_bytes = vim.mpack.Unpacker(), 0
  return function(bytes)
    local messages, at = {}, 1
    while at <= #bytes do
      local ok, value, after = pcall(unpack, bytes, at)
      if not ok then
        return nil, value
      end
      if value == nil then
        unfinished_bytes = unfinished_bytes + #bytes - at + 1
        break
      end
      if not is_message(value) then
        return nil, 'a frame that is no response and no notification'
      end
      messages[#messages + 1] = value
      at, unfinished_bytes = after, 0
    end
    if unfinished_bytes > MAX_ANSWER_BYTES then
      return nil, ('a frame longer than %d bytes'):format(MAX_ANSWER_BYTES)
    end
    return messages
  end
end

--- Return the text of a response's error, nil for none.
function M.error_text(value)
  if value == nil or value == vim.NIL then
    return nil
  end
  if type(value) == 'table' and type(value[2]) == 'string' then
    return value[2]
  end
  return 'memd answered with an error of unknown shape: ' .. vim.inspect(value)
end

return M

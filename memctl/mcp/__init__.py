"""The MCP server of memctl: memd for agents, as JSON-RPC lines on stdin and stdout.

It does not use the official SDK, whose import takes 0.6 s on a fast machine at each start of an agent's
client; this server starts in a sixth of that and needs no package. The tests use the SDK's client. `server`
handles the protocol, `asking` calls the daemon; `tools`, `resources` and `prompts` are offered to agents.
"""

"""The MCP server of memctl: memd for agents, as JSON-RPC lines on stdin and stdout.

Written here and not with the official SDK: importing that takes 0.6 s of each start of an agent's program,
on a quick machine; the whole of this starts in a sixth of it, and needs no package. The tests speak to it
through the SDK's client. `server` has the messages of the protocol, `asking` the way to the daemon; `tools`,
`resources` and `prompts` are what an agent can use.
"""

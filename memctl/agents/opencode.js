// memd's plugin for OpenCode, written by `memctl agents install opencode` and removed by `uninstall`.
// It runs `memctl hook opencode` at each prompt and adds the output to the message. On any error, the message
// is not changed.
import { spawn } from "node:child_process"

const HOOKS = __HOOKS__ // event: the command, for a shell
const DEADLINE_MS = 5000 // the hook itself ends after 1000, unless MEMD_HOOK_MS sets another time

function hook(event, told) {
  return new Promise((resolve) => {
    const child = spawn(HOOKS[event], { shell: true, stdio: ["pipe", "pipe", "ignore"] })
    const late = setTimeout(() => resolve(""), DEADLINE_MS)
    const said = []
    child.stdout.on("data", (part) => said.push(part))
    child.on("error", () => resolve(""))
    child.on("close", () => {
      clearTimeout(late)
      resolve(Buffer.concat(said).toString("utf8"))
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(told))
  })
}

// What the model gets with a prompt: at the first one of this process, and after a compaction, the notes of a
// start, too. *state* has the sessions that begun, and those that were compacted since.
async function notes(state, session, directory, prompt) {
  const told = { cwd: directory, session_id: session, prompt }
  const starts = state.compacted.delete(session) ? { ...told, source: "compact" } : told
  const events = state.begun.has(session) && starts === told ? [] : [["start", starts]]
  state.begun.add(session)
  const texts = []
  for (const [event, given] of [...events, ["prompt", told]]) {
    const text = await hook(event, given) // in turn: a prompt does not repeat what the start said
    if (text) texts.push(text)
  }
  return texts
}

// OpenCode 1
export const MemdPlugin = async ({ directory }) => {
  const state = { begun: new Set(), compacted: new Set() }
  return {
    event: async ({ event }) => {
      if (event.type === "session.compacted") state.compacted.add(event.properties.sessionID)
    },
    "chat.message": async (input, output) => {
      try {
        const prompt = output.parts
          .filter((part) => part.type === "text" && !part.synthetic)
          .map((part) => part.text)
          .join("\n")
        for (const text of await notes(state, input.sessionID, directory, prompt)) {
          output.parts.push({
            id: `prt_memd${Date.now().toString(36)}${Math.random().toString(36).slice(2, 10)}`,
            sessionID: input.sessionID,
            messageID: output.message.id,
            type: "text",
            text,
            synthetic: true,
          })
        }
      } catch {
        // the message goes on without
      }
    },
  }
}

// OpenCode 2. A prompt is stored as it is typed, so the notes are sent with each request of the session, from
// here: a process that did not begin the session has none of them, and asks as after a compaction.
const setup = async (ctx) => {
  const state = { begun: new Set(), compacted: new Set() }
  const given = new Map() // session: its notes, oldest first
  await ctx.session.hook("prompt", async (event) => {
    try {
      const session = event.sessionID
      if (!given.has(session)) state.compacted.add(session)
      const info = await ctx.session.get({ sessionID: session })
      const directory = (info?.data ?? info)?.location?.directory ?? ctx.location.directory
      const texts = await notes(state, session, directory, event.prompt?.text ?? "")
      given.set(session, [...(given.get(session) ?? []), ...texts])
    } catch {
      // the prompt goes on without
    }
  })
  await ctx.session.hook("context", (event) => {
    for (const text of given.get(event.sessionID) ?? []) event.system.push({ type: "text", text })
  })
  await ctx.session.hook("compaction", (event) => {
    given.delete(event.sessionID)
  })
}

export default { id: "memd", server: MemdPlugin, setup }

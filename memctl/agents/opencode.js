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

export const MemdPlugin = async ({ directory }) => {
  const begun = new Set()
  const compacted = new Set()
  return {
    event: async ({ event }) => {
      if (event.type === "session.compacted") compacted.add(event.properties.sessionID)
    },
    "chat.message": async (input, output) => {
      try {
        const prompt = output.parts
          .filter((part) => part.type === "text" && !part.synthetic)
          .map((part) => part.text)
          .join("\n")
        const told = { cwd: directory, session_id: input.sessionID, prompt }
        const starts = compacted.delete(input.sessionID) ? { ...told, source: "compact" } : told
        const events = begun.has(input.sessionID) && starts === told ? [] : [["start", starts]]
        begun.add(input.sessionID)
        for (const [event, given] of [...events, ["prompt", told]]) {
          const text = await hook(event, given) // in turn: a prompt does not repeat what the start said
          if (!text) continue
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

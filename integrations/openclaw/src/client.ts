// A client of memd: MessagePack-RPC over its Unix socket, as docs/protocol.md describes it. One connection for a call.

import { lstatSync } from "node:fs"
import { createConnection } from "node:net"
import { dirname, join } from "node:path"
import { decodeMultiStream, encode } from "@msgpack/msgpack"

export const CALL_TIMEOUT_MS = 10_000 // the daemon gives up at 5 s; the rest is for a loaded machine

/** The daemon's answer is an error; `code` is one of its own, as MEMD_WORKSPACE. */
export class MemdError extends Error {
  readonly code: string

  constructor(text: string) {
    const [code, ...rest] = text.split(": ")
    super(rest.join(": ") || text)
    this.code = code?.startsWith("MEMD_") ? code : "MEMD_INTERNAL"
  }
}

/** Nobody listens at the socket. */
export class NoDaemonError extends Error {}

/** Return where memd listens. */
export function socketPath(env: NodeJS.ProcessEnv = process.env): string {
  if (env.MEMD_SOCKET) return env.MEMD_SOCKET
  const absolute = (path: string | undefined) => (path?.startsWith("/") ? path : undefined)
  const runtime = absolute(env.XDG_RUNTIME_DIR)
  if (runtime) return join(runtime, "memd", "memd.sock")
  return join(absolute(env.TMPDIR) ?? "/tmp", `memd-${process.getuid?.()}`, "memd.sock")
}

/** Ask once. Rejects with MemdError, NoDaemonError, or what the signal says. */
export async function call<Answer>(
  socket: string,
  method: string,
  params: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<Answer> {
  checkFolder(dirname(socket))
  const over = AbortSignal.any([AbortSignal.timeout(CALL_TIMEOUT_MS), ...(signal ? [signal] : [])])
  over.throwIfAborted()
  const connection = createConnection(socket)
  const end = () => connection.destroy(over.reason as Error)
  over.addEventListener("abort", end)
  try {
    connection.write(encode([0, 1, method, [params]]))
    for await (const message of decodeMultiStream(connection)) {
      if (!Array.isArray(message) || message[0] !== 1 || message[1] !== 1) continue
      if (message[2] !== null) throw new MemdError(String((message[2] as unknown[])[1]))
      return message[3] as Answer
    }
    throw new Error(`memd closed the connection during ${method}; its log says why`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === "ENOENT" || code === "ECONNREFUSED") throw new NoDaemonError(`no memd listens at ${socket}`)
    throw error
  } finally {
    over.removeEventListener("abort", end)
    connection.destroy()
  }
}

/** In a folder that others may write, somebody else could be listening. */
function checkFolder(folder: string): void {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  if (!found) throw new NoDaemonError(`there is no ${folder}`)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || found.mode & 0o077) {
    throw new Error(`${folder} is not a private folder of yours: memctl status says what to do`)
  }
}

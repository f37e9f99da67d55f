// The memory of one agent: what OpenClaw's memory slot asks, as calls of memd. Knows nothing of OpenClaw's plugin API.

import { spawn } from "node:child_process"
import { call, MemdError, NoDaemonError, socketPath } from "./client.ts"

const START_TIMEOUT_MS = 15_000 // memctl start returns when the daemon answers
const DEFAULT_LINES = 200 // of a read without a number: some screens, and far from a context's size
const SYNC_MS = 1000 // what was saved a moment ago is found; what takes longer is found the next time

export type Settings = { memctl?: string[]; socket?: string; workspace?: string }

export type SearchResult = {
  path: string
  startLine: number
  endLine: number
  score: number
  snippet: string
  source: "memory"
  citation: string
}

export type ReadResult =
  | { status: "ok"; text: string; path: string; from: number; lines: number; truncated?: boolean; nextFrom?: number }
  | { status: "not_found"; text: ""; path: string }

type Hit = { path: string; start_line: number; end_line: number; score: number; snippet: string }
type SearchAnswer = { hits: Hit[]; mode: string; model_id: string | null; degraded: string[]; confidence: string }
type GetAnswer = { path: string; text: string; start_line: number; end_line: number; lines: number }
type Indexed = { root: string; sources?: number; chunks?: number }

export type Found = { results: SearchResult[]; mode: string; model: string | null; degraded: string[] }

/** One workspace of memd's. Its index follows the files by itself: there is nothing to reindex. */
export class Memory {
  readonly root: string
  private readonly settings: Settings

  constructor(root: string, settings: Settings = {}) {
    this.root = settings.workspace ?? root
    this.settings = settings
  }

  async search(
    query: string,
    options: { maxResults?: number; minScore?: number; lexicalOnly?: boolean; signal?: AbortSignal } = {},
  ): Promise<Found> {
    const params: Record<string, unknown> = { query, sync: SYNC_MS }
    if (options.maxResults) params.limit = options.maxResults
    if (options.minScore !== undefined) params.min_score = Math.min(1, Math.max(0, options.minScore))
    if (options.lexicalOnly) params.mode = "keyword"
    const answer = await this.ask<SearchAnswer>("search", params, options.signal)
    const hits = answer.confidence === "none" ? [] : answer.hits
    const results = hits.map((hit) => ({
      path: hit.path,
      startLine: hit.start_line,
      endLine: hit.end_line,
      score: hit.score,
      snippet: hit.snippet,
      source: "memory" as const,
      citation: `${hit.path}#L${hit.start_line}-L${hit.end_line}`,
    }))
    return { results, mode: answer.mode, model: answer.model_id, degraded: answer.degraded }
  }

  async read(path: string, from = 1, lines = DEFAULT_LINES, signal?: AbortSignal): Promise<ReadResult> {
    try {
      const params = { path, start_line: from, end_line: from + lines - 1 }
      const answer = await this.ask<GetAnswer>("get", params, signal)
      const shown = answer.end_line - answer.start_line + 1
      const rest = answer.end_line < answer.lines ? { truncated: true, nextFrom: answer.end_line + 1 } : {}
      return { status: "ok", text: answer.text, path: answer.path, from: answer.start_line, lines: shown, ...rest }
    } catch (error) {
      if (error instanceof MemdError && error.code === "MEMD_NOT_FOUND") return { status: "not_found", text: "", path }
      throw error
    }
  }

  async status(): Promise<Indexed | undefined> {
    const answer = await this.ask<{ workspaces: Indexed[] }>("status", {})
    return answer.workspaces.find((one) => one.root === this.root)
  }

  /** Wait until everything that is saved by now is searchable by its words. */
  async sync(): Promise<void> {
    await this.ask("sync", {})
  }

  /** Ask of this workspace; start a daemon that is down, and register a workspace that it does not know. */
  private async ask<Answer>(method: string, params: Record<string, unknown>, signal?: AbortSignal): Promise<Answer> {
    const socket = this.settings.socket ?? socketPath()
    const once = () => call<Answer>(socket, method, { ...params, workspace: this.root, agent: true }, signal)
    try {
      return await once()
    } catch (error) {
      if (error instanceof NoDaemonError) await start(this.settings.memctl ?? ["memctl"])
      else if (!isUnregistered(error)) throw error
    }
    try {
      return await once()
    } catch (error) {
      if (!isUnregistered(error)) throw error
    }
    await call(socket, "workspace.add", { path: this.root }, signal)
    return await once()
  }
}

function isUnregistered(error: unknown): boolean {
  return error instanceof MemdError && error.code === "MEMD_WORKSPACE"
}

function start(command: string[]): Promise<void> {
  const [program, ...rest] = command
  if (!program) return Promise.reject(new Error("memd is down, and `memctl` is set to nothing"))
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...rest, "start"], { stdio: "ignore", timeout: START_TIMEOUT_MS })
    child.on("error", (error) => reject(new Error(`memd is down, and ${program} does not start: ${error.message}`)))
    child.on("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`memd is down, and ${program} start failed (exit code ${code})`)),
    )
  })
}

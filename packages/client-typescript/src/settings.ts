import type { Authorize } from "./auth.js";

/** How a client reaches a deployment. */
export interface ConnectOptions {
  /** The deployment's address, the output `ApiUrl` of its stack. */
  url: string;
  /** How requests say who sends them: {@link sigv4} or {@link bearer}. */
  auth?: Authorize;
  /** How often a request is sent at most; 6 unless given. */
  attempts?: number;
  /** Milliseconds that an attempt may take; 30,000 unless given. The API ends every request within 25 seconds. */
  timeout?: number;
  /** Milliseconds before the second attempt, doubled before each later one; 100 unless given. */
  firstDelay?: number;
  /** Milliseconds between two attempts at most; 5,000 unless given. `Retry-After` may ask for more. */
  longestDelay?: number;
  /** Sends requests; the runtime's `fetch` unless given. */
  fetch?: typeof fetch;
  /**
   * Reads and writes JSON; the runtime's `JSON` unless given. That reads `12.50` as 12.5 and rounds integers above
   * 2^53, although the store keeps both as they were written.
   */
  json?: { parse(text: string): unknown; stringify(value: unknown): string };
  /**
   * Decompresses a large body that was stored with brotli. Unless given, the client uses what the runtime has: Node
   * 20.16 and newer, and runtimes whose `DecompressionStream` knows brotli.
   */
  brotli?: (content: Uint8Array) => Uint8Array | Promise<Uint8Array>;
}

/** Options of every call. */
export interface CallOptions {
  /** Ends the call, and the waiting between attempts; what it throws is the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Names the call in the store's logs, 1 to 128 visible ASCII characters. */
  correlationId?: string | undefined;
}

/**
 * The options of a client, with those that were left out.
 *
 * @internal
 */
export type Settings = Required<Omit<ConnectOptions, "auth" | "brotli">> & Pick<ConnectOptions, "auth" | "brotli">;

/**
 * Fill in what was left out.
 *
 * @internal
 * @throws TypeError for an address that is none.
 */
export function settingsOf(options: ConnectOptions): Settings {
  const url = new URL(options.url).href.replace(/\/$/, "");
  return {
    attempts: 6,
    timeout: 30_000,
    firstDelay: 100,
    longestDelay: 5_000,
    fetch: globalThis.fetch.bind(globalThis),
    json: JSON,
    ...options,
    url,
  };
}

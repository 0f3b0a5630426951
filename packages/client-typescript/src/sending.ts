import { ConnectionError, EpochalError, errorOf, GatewayError } from "./errors.js";
import { withRetries } from "./retries.js";
import type { CallOptions, Settings } from "./settings.js";
import { encodeRfc3986 } from "./sigv4.js";
import type { Problem } from "./types.js";

/** A value of a query: a list is a parameter for each of its entries; one that is undefined is left out. */
export type QueryValue = string | number | boolean | readonly string[] | undefined;

/** A request of the API. */
export interface ApiRequest extends CallOptions {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** The path below the deployment's address, made by {@link pathOf}. */
  path: string;
  query?: Readonly<Record<string, QueryValue>>;
  /** Sent as JSON. */
  body?: unknown;
  /** The idempotency key of an append. */
  key?: string;
  /** Whether the request appends under keys, so that its error says whether the append may have been made. */
  appends?: boolean;
}

/** An answer of the API. */
export interface ApiAnswer<T> {
  value: T;
  headers: Headers;
}

/**
 * Write a path whose segments are encoded.
 *
 * @throws TypeError for an empty segment, `.` and `..`, which name no stream and would change the path.
 */
export function pathOf(...segments: string[]): string {
  for (const segment of segments) {
    if (/^\.{0,2}$/.test(segment)) throw new TypeError(`a name must not be empty, "." or "..", got "${segment}"`);
  }
  return `/${segments.map(encodeRfc3986).join("/")}`;
}

/**
 * Send a request until it is answered.
 *
 * @internal
 * @throws ProblemError, GatewayError and ConnectionError.
 */
export async function send<T>(settings: Settings, request: ApiRequest): Promise<ApiAnswer<T>> {
  const url = new URL(settings.url + request.path + queryOf(request.query ?? {}));
  const body = request.body === undefined ? "" : settings.json.stringify(request.body);
  const headers: Record<string, string> = {};
  if (body) headers["content-type"] = "application/json";
  if (request.key !== undefined) headers["idempotency-key"] = request.key;
  if (request.correlationId !== undefined) headers["x-correlation-id"] = request.correlationId;

  return withRetries(settings, request.signal, request.appends ?? request.key !== undefined, async (signal) => {
    const unsigned = { method: request.method, url, headers, body };
    const sent = { ...headers, ...(await settings.auth?.(unsigned)) };
    const { response, content } = await exchange(settings, url, {
      method: request.method,
      headers: sent,
      signal,
      ...(body && { body }),
    });
    const text = new TextDecoder().decode(content);
    if (!response.ok) throw refusalOf(response, text);
    return { value: parsed(settings, text, url) as T, headers: response.headers };
  });
}

/**
 * Send one request and read the whole answer.
 *
 * @internal
 * @throws ConnectionError where no answer arrives, or a part of it.
 */
export async function exchange(
  settings: Settings,
  url: URL,
  init: RequestInit,
): Promise<{ response: Response; content: ArrayBuffer }> {
  try {
    const response = await settings.fetch(url, init);
    return { response, content: await response.arrayBuffer() };
  } catch (cause) {
    throw new ConnectionError(`${init.method} ${url.pathname} was not answered`, { cause });
  }
}

/** The seconds that an answer asks to wait, by its `Retry-After`: a number, or a date. */
export function retryAfterIn(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return seconds >= 0 ? seconds : undefined;
}

/** The error of an answer: a problem of the API, or the gateway's own. */
function refusalOf(response: Response, text: string): EpochalError {
  const retryAfter = retryAfterIn(response.headers);
  const value = jsonOf(text) as Partial<Problem> & { message?: unknown; Message?: unknown };
  if (typeof value?.type === "string") return errorOf({ ...value, status: response.status } as Problem, retryAfter);
  const message = value?.message ?? value?.Message;
  return new GatewayError(response.status, typeof message === "string" ? message : text.slice(0, 200), retryAfter);
}

/** What an answer holds; one that is no JSON was cut short or is another server's, and is asked for again. */
function parsed(settings: Settings, text: string, url: URL): unknown {
  try {
    return settings.json.parse(text);
  } catch (cause) {
    throw new ConnectionError(`the answer of ${url.pathname} is no JSON`, { cause });
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function queryOf(query: Readonly<Record<string, QueryValue>>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : value === undefined ? [] : [value]).map(
      (part) => `${encodeRfc3986(name)}=${encodeRfc3986(String(part))}`,
    ),
  );
  return pairs.length ? `?${pairs.join("&")}` : "";
}

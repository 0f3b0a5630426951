/**
 * Bodies that answers have no room for: `dataUrl` is a link to the content in the bucket, and an event that is marked
 * `omitted` is read alone, which has it or its link. Content is checked against its hash and decompressed.
 */

import { ContentError, GatewayError } from "./errors.js";
import { withRetries } from "./retries.js";
import { exchange, send } from "./sending.js";
import type { CallOptions, Settings } from "./settings.js";
import { sha256 } from "./sigv4.js";
import type { components } from "./schema.js";
import type { Claim } from "./types.js";

type Link = components["schemas"]["Link"];

/** What answers show of an event or of state. */
interface Shown {
  dataUrl?: Link;
  metaUrl?: Link;
  omitted?: boolean;
}

/**
 * Return an event with its body and metadata.
 *
 * @internal
 * @param alone - reads the event alone: for one that had no room, or whose links have expired.
 * @throws ContentError for content that does not have its hash, or that this runtime cannot decompress.
 */
export async function withBodies<E extends Shown>(
  settings: Settings,
  event: E,
  alone: () => Promise<E>,
  options: CallOptions,
): Promise<Omit<E, keyof Shown>> {
  if (!event.omitted && !event.dataUrl && !event.metaUrl) return event;
  const shown = event.omitted ? await alone() : event;
  try {
    return await linked(settings, shown, options);
  } catch (error) {
    if (!(error instanceof GatewayError && error.status === 403)) throw error;
    return linked(settings, await alone(), options); // links work for 15 minutes
  }
}

/**
 * Upload content for the `claim` of an event. What no append claims within a day expires.
 *
 * @internal
 * @throws TooLargeError beyond the deployment's limit, 100 MB by default.
 */
export async function upload(settings: Settings, content: Uint8Array | string, options: CallOptions): Promise<Claim> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const body = { sha256: await sha256(bytes), bytes: bytes.length };
  const { value } = await send<components["schemas"]["Upload"]>(settings, {
    ...options,
    method: "POST",
    path: "/bodies",
    body,
  });
  await withRetries(settings, options.signal, false, async (signal) => {
    const { url, method, headers } = value;
    const { response, content: text } = await exchange(settings, new URL(url), {
      method,
      headers: Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "content-length")),
      body: bytes as BodyInit,
      signal,
    });
    if (!response.ok && response.status !== 412) throw refused(response, text); // 412: it is there already
  });
  return value.claim;
}

async function linked<E extends Shown>(
  settings: Settings,
  event: E,
  options: CallOptions,
): Promise<Omit<E, keyof Shown>> {
  const { dataUrl, metaUrl, omitted, ...rest } = event;
  if (omitted) throw new ContentError("an event is so large that no answer has room for its body, not even alone");
  return {
    ...rest,
    ...(dataUrl && named("data", settings, await contentOf(settings, dataUrl, options))),
    ...(metaUrl && named("meta", settings, await contentOf(settings, metaUrl, options))),
  };
}

/** A body as answers show it: under its name where it is JSON, else in base64 under its name with `64`. */
function named(name: "data" | "meta", settings: Settings, content: Uint8Array): Record<string, unknown> {
  try {
    return { [name]: settings.json.parse(new TextDecoder("utf-8", { fatal: true }).decode(content)) };
  } catch {
    let binary = "";
    for (const byte of content) binary += String.fromCharCode(byte);
    return { [`${name}64`]: btoa(binary) };
  }
}

async function contentOf(settings: Settings, link: Link, options: CallOptions): Promise<Uint8Array> {
  return withRetries(settings, options.signal, false, async (signal) => {
    const { response, content } = await exchange(settings, new URL(link.url), { method: "GET", signal });
    if (!response.ok) throw refused(response, content);
    const stored = new Uint8Array(content);
    if ((await sha256(stored)) !== link.sha256) {
      throw new ContentError(`the content at ${new URL(link.url).pathname} does not have the hash ${link.sha256}`);
    }
    return decoded(settings, stored, link.encoding);
  });
}

function refused(response: Response, content: ArrayBuffer): GatewayError {
  return new GatewayError(response.status, new TextDecoder().decode(content).slice(0, 200));
}

async function decoded(settings: Settings, content: Uint8Array, encoding: Link["encoding"]): Promise<Uint8Array> {
  switch (encoding) {
    case "identity":
      return content;
    case "deflate-raw":
      return decompressed(content, encoding);
    case "br":
      return settings.brotli ? settings.brotli(content) : unbrotli(content);
    default:
      throw new ContentError(`a body has the encoding ${String(encoding)}, which this client does not know: upgrade`);
  }
}

/** Decompress with what the runtime has. */
async function unbrotli(content: Uint8Array): Promise<Uint8Array> {
  interface Zlib {
    brotliDecompressSync(content: Uint8Array): Uint8Array;
  }
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): Zlib | undefined } };
  const zlib = process?.getBuiltinModule?.("node:zlib");
  if (zlib) return zlib.brotliDecompressSync(content);
  try {
    return await decompressed(content, "brotli");
  } catch (cause) {
    throw new ContentError("this runtime cannot decompress brotli: connect with the option brotli", { cause });
  }
}

async function decompressed(content: Uint8Array, format: string): Promise<Uint8Array> {
  const expander = new DecompressionStream(format as CompressionFormat);
  const stream = new Blob([content as BlobPart]).stream().pipeThrough(expander);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

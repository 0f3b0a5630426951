/**
 * AWS Signature Version 4, on Web Crypto.
 *
 * The signature covers method, path, query, body, host, time and session token. A path is encoded once more than it is
 * in the address, as every service but S3 expects.
 */

import type { Authorize, UnsignedRequest } from "./auth.js";
import { hex } from "./keys.js";

/** Credentials of AWS. */
export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** Of temporary credentials. */
  sessionToken?: string | undefined;
}

/** What requests are signed with. */
export interface SigV4Options {
  /** The region of the deployment. */
  region: string;
  /** Credentials, or a function that returns some that are still valid; it is called for each attempt. */
  credentials: Credentials | (() => Credentials | Promise<Credentials>);
  /** The signed service: `execute-api` unless given; `lambda` for functions with addresses of their own. */
  service?: string;
}

const encoder = new TextEncoder();

/** Sign requests with AWS credentials (Signature Version 4). */
export function sigv4(options: SigV4Options): Authorize {
  return async (request) => {
    const { credentials, region, service = "execute-api" } = options;
    const current = typeof credentials === "function" ? await credentials() : credentials;
    return signedHeaders(request, current, region, service, new Date());
  };
}

/**
 * Read credentials from the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` of the
 * process; for {@link SigV4Options.credentials}.
 *
 * @throws TypeError where the first two are not set, or there is no process.
 */
export function environmentCredentials(): Credentials {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  const env = process?.env ?? {};
  const accessKeyId = env["AWS_ACCESS_KEY_ID"];
  const secretAccessKey = env["AWS_SECRET_ACCESS_KEY"];
  if (!accessKeyId || !secretAccessKey) {
    throw new TypeError("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set in the environment");
  }
  return { accessKeyId, secretAccessKey, sessionToken: env["AWS_SESSION_TOKEN"] || undefined };
}

/**
 * Return the headers that sign a request at a moment.
 *
 * @internal
 */
export async function signedHeaders(
  request: UnsignedRequest,
  credentials: Credentials,
  region: string,
  service: string,
  moment: Date,
): Promise<Record<string, string>> {
  const time = moment.toISOString().replace(/[-:]|\.\d{3}/g, "");
  const date = time.slice(0, 8);
  const added: Record<string, string> = { "x-amz-date": time };
  if (credentials.sessionToken) added["x-amz-security-token"] = credentials.sessionToken;

  const headers = Object.entries({ ...request.headers, ...added, host: request.url.host });
  headers.sort(([one], [other]) => byText(one, other));
  const names = headers.map(([name]) => name).join(";");
  const canonical = [
    request.method,
    request.url.pathname.split("/").map(encodeRfc3986).join("/"),
    canonicalQuery(request.url.search.slice(1)),
    ...headers.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, " ")}`),
    "",
    names,
    await sha256(encoder.encode(request.body)),
  ].join("\n");

  const scope = `${date}/${region}/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, await sha256(encoder.encode(canonical))].join("\n");
  let key: Uint8Array = encoder.encode(`AWS4${credentials.secretAccessKey}`);
  for (const part of [date, region, service, "aws4_request"]) key = await hmac(key, part);
  const signature = hex(await hmac(key, text));
  added["authorization"] =
    `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return added;
}

/**
 * Encode all but letters, digits and `-_.~`, for addresses and signatures.
 *
 * @internal
 */
export function encodeRfc3986(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

/**
 * Return the SHA-256 of bytes in hex.
 *
 * @internal
 */
export async function sha256(bytes: Uint8Array): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as BufferSource)));
}

async function hmac(key: Uint8Array, text: string): Promise<Uint8Array> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key as BufferSource, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, encoder.encode(text)));
}

/** Sort the parameters of a query by name, then by value. */
function canonicalQuery(query: string): string {
  const pairs = query.split("&").map((pair): [string, string] => {
    const [name = "", ...value] = pair.split("=");
    return [name, value.join("=")];
  });
  pairs.sort((one, other) => byText(one[0], other[0]) || byText(one[1], other[1]));
  return query && pairs.map((pair) => pair.join("=")).join("&");
}

function byText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/**
 * How requests say who sends them: by a bearer token, or by a signature (`sigv4`).
 */

/** A request before it is sent. */
export interface UnsignedRequest {
  /** The HTTP method. */
  method: string;
  /** The whole address. */
  url: URL;
  /** Headers that the request has so far, with names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** The body; empty without one. */
  body: string;
}

/** Returns the headers that a request needs besides; called anew for each attempt. */
export type Authorize = (request: UnsignedRequest) => Promise<Record<string, string>> | Record<string, string>;

/**
 * Send a bearer token, for deployments that have an issuer of tokens.
 *
 * @param token - the token, or a function that returns one that is still valid; it is called for each attempt.
 */
export function bearer(token: string | (() => string | Promise<string>)): Authorize {
  return async () => ({ authorization: `Bearer ${typeof token === "string" ? token : await token()}` });
}

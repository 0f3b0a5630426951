/**
 * What the client throws:
 *
 *     EpochalError
 *     ├── ProblemError              any problem of the API; `type` says which
 *     │   ├── InvalidInputError     400: `field` and `rule`
 *     │   ├── NotFoundError         404: no such stream, event, partition …
 *     │   ├── ConflictError         409, 412: another writer was first; `version`, `token`, `streams`
 *     │   ├── ConditionFailedError  409: matching `events` are there; `position`, `more`
 *     │   ├── UndeterminedError     409: whether the append was made can no longer be told
 *     │   ├── StreamDeletedError    410: the name takes no more events
 *     │   ├── TooLargeError         413: `size` and `limit`
 *     │   └── UnavailableError      503: the store cannot be reached or is throttling
 *     ├── GatewayError              API Gateway's own answer: 401, 403, 404, 413, 429, 5xx
 *     ├── ConnectionError           no answer arrived
 *     ├── ContentError              a body that does not have its hash, cannot be decoded, or is too large to get
 *     └── PrunedError               a decision needs events that are gone
 */

import type { Problem, TaggedEvent, Token } from "./types.js";

const PREFIX = "urn:epochal:problem:";

/** The root of all errors that the client throws, but for `TypeError` and the reason of an aborted signal. */
export class EpochalError extends Error {
  override name = "EpochalError"; // bundlers shorten the names of classes

  /**
   * Whether the append may have been made although the call failed: an attempt ended without an answer or with a 5xx,
   * and no later answer settled it. Repeat the call with the same key, or read first.
   */
  maybeApplied = false;
}

/** A problem of the API. Later versions may have further types: treat one that you do not know by its `status`. */
export class ProblemError extends EpochalError {
  override name = "ProblemError";

  /** Which kind of problem, such as `version-conflict`. */
  readonly type: string;
  /** The HTTP status. */
  readonly status: number;

  /**
   * @param problem - the whole problem document; `instance` names the occurrence in the logs.
   * @param retryAfter - seconds to wait before a repeat, where the answer said so.
   */
  constructor(
    readonly problem: Problem,
    readonly retryAfter?: number,
  ) {
    super(problem.detail ?? problem.title);
    this.type = problem.type.startsWith(PREFIX) ? problem.type.slice(PREFIX.length) : problem.type;
    this.status = problem.status;
  }
}

/** The request breaks a rule; nothing was written. */
export class InvalidInputError extends ProblemError {
  override name = "InvalidInputError";

  /** The field, parameter or header that broke a rule. */
  get field(): string | undefined {
    return this.problem.field;
  }

  /** The rule it broke. */
  get rule(): string | undefined {
    return this.problem.rule;
  }
}

/** There is no such stream, event, tag, timer, partition, group or operation. */
export class NotFoundError extends ProblemError {
  override name = "NotFoundError";
}

/** Another writer was first: the stream is not what the append expected. Decide anew, and append again. */
export class ConflictError extends ProblemError {
  override name = "ConflictError";

  /** The stream concerned. */
  get stream(): string | undefined {
    return this.problem.stream;
  }

  /** The stream's version. */
  get version(): number | undefined {
    return this.problem.version;
  }

  /** The stream's exact state, to expect next. */
  get token(): Token | undefined {
    return this.problem.token as Token | undefined;
  }

  /** Of an append to several streams: those in the way, with their versions and tokens. */
  get streams(): Problem["streams"] {
    return this.problem.streams;
  }
}

/** Events that the condition of an append forbids are there. */
export class ConditionFailedError extends ProblemError {
  override name = "ConditionFailedError";

  /** Events in the way, as many as the answer has room for. */
  get events(): TaggedEvent[] {
    return this.problem.events ?? [];
  }

  /** What has seen these events: append after it. */
  get position(): string | undefined {
    return this.problem.position;
  }

  /** Whether there are further events, which the position has not seen: then query after it. */
  get more(): boolean {
    return this.problem.more ?? false;
  }
}

/** Nobody can tell any more whether the append was made: `maybeApplied` is true. Read before you append again. */
export class UndeterminedError extends ProblemError {
  override name = "UndeterminedError";
}

/** The stream was deleted, and its name takes no more events. */
export class StreamDeletedError extends ProblemError {
  override name = "StreamDeletedError";

  /** The version at which it ended. */
  get version(): number | undefined {
    return this.problem.version;
  }
}

/** A body, an item or a transaction is over a limit; nothing was written. */
export class TooLargeError extends ProblemError {
  override name = "TooLargeError";

  /** How large it was. */
  get size(): number | undefined {
    return this.problem.size;
  }

  /** How large it may be. */
  get limit(): number | undefined {
    return this.problem.limit;
  }
}

/** The store cannot be reached or is throttling, after all attempts. */
export class UnavailableError extends ProblemError {
  override name = "UnavailableError";
}

/**
 * API Gateway's own answer: 401 (a token that is not valid), 403 (not signed, or not allowed), 404 (no such route),
 * 413 (above 10 MB), 429 (throttled, after all attempts), and 5xx (a function that fails, after all attempts).
 */
export class GatewayError extends EpochalError {
  override name = "GatewayError";

  /**
   * @param status - the HTTP status.
   * @param message - the gateway's words.
   * @param retryAfter - seconds to wait before a repeat, where the answer said so.
   */
  constructor(
    readonly status: number,
    message: string,
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

/** No answer arrived: the connection failed, or the attempt took too long. `cause` says why. */
export class ConnectionError extends EpochalError {
  override name = "ConnectionError";
}

/** A body that does not have its hash, that this runtime cannot decode, or that no answer has room for. */
export class ContentError extends EpochalError {
  override name = "ContentError";
}

/** A decision needs events of a stream that have been pruned. */
export class PrunedError extends EpochalError {
  override name = "PrunedError";

  /**
   * @param stream - the stream's name.
   * @param lowWater - the first index that is there.
   */
  constructor(
    readonly stream: string,
    readonly lowWater: number,
  ) {
    super(`events of ${stream} before index ${lowWater} have been pruned; decide with forgetPruned to do without them`);
  }
}

const CLASSES: Record<string, typeof ProblemError> = {
  "invalid-input": InvalidInputError,
  "version-conflict": ConflictError,
  "precondition-failed": ConflictError,
  "condition-failed": ConditionFailedError,
  undetermined: UndeterminedError,
  "stream-deleted": StreamDeletedError,
  "too-large": TooLargeError,
  unavailable: UnavailableError,
};

/**
 * Make the error of a problem.
 *
 * @internal
 */
export function errorOf(problem: Problem, retryAfter?: number): ProblemError {
  const type = problem.type.slice(PREFIX.length);
  const Class = Object.hasOwn(CLASSES, type) ? CLASSES[type] : problem.status === 404 ? NotFoundError : undefined;
  return new (Class ?? ProblemError)(problem, retryAfter);
}

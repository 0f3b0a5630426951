/**
 * Requests that are repeated: which failures pass, how long to wait, and whether an append may have been made.
 *
 * | failure                                     | repeated | may have been made |
 * |---------------------------------------------|----------|--------------------|
 * | no answer, or a part of one                 | yes      | yes                |
 * | 429                                         | yes      | no                 |
 * | 5xx, but for the problems in `LASTING`      | yes      | yes                |
 * | anything else                               | no       | no                 |
 *
 * A repeat has the same key, so a conflict that answers it settles that no earlier attempt made the append.
 */

import {
  ConditionFailedError,
  ConflictError,
  ConnectionError,
  EpochalError,
  GatewayError,
  ProblemError,
  UndeterminedError,
} from "./errors.js";
import type { Settings } from "./settings.js";

/** Problems with a 5xx that the same request meets again. */
const LASTING = ["corrupt-data", "missing-body", "not-deployed"];

/** Milliseconds that `Retry-After` may ask for at most. */
const LONGEST_WAIT = 60_000;

/**
 * Call a function until it succeeds, fails for good, or has been called as often as allowed.
 *
 * @internal
 * @param appends - whether the call appends: its error then says whether the append may have been made.
 * @param attempt - one attempt, which ends with the signal that it is given.
 */
export async function withRetries<T>(
  settings: Settings,
  signal: AbortSignal | undefined,
  appends: boolean,
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  let uncertain = false;
  for (let number = 1; ; number++) {
    try {
      return await inTime(settings.timeout, signal, attempt);
    } catch (error) {
      if (!(error instanceof EpochalError)) throw error;
      const passing = passes(error);
      if (passing && statusOf(error) !== 429) uncertain = true;
      if (!passing || number >= settings.attempts) {
        error.maybeApplied = appends && (error instanceof UndeterminedError || (uncertain && !settles(error)));
        throw error;
      }
      await pause(Math.max(backoff(settings, number), retryAfterOf(error)), signal);
    }
  }
}

/** Whether the same request may succeed later. */
function passes(error: EpochalError): boolean {
  if (error instanceof ConnectionError) return true;
  if (error instanceof ProblemError && LASTING.includes(error.type)) return false;
  const status = statusOf(error);
  return status === 429 || status >= 500;
}

/** Whether an error says that no attempt has made the append. */
function settles(error: EpochalError): boolean {
  return error instanceof ConflictError || error instanceof ConditionFailedError;
}

function statusOf(error: EpochalError): number {
  return error instanceof ProblemError || error instanceof GatewayError ? error.status : 0;
}

/** The milliseconds that an answer asks to wait. */
function retryAfterOf(error: EpochalError): number {
  const seconds = error instanceof ProblemError || error instanceof GatewayError ? error.retryAfter : undefined;
  return Math.min((seconds ?? 0) * 1000, LONGEST_WAIT);
}

/** The milliseconds before the next attempt: doubled each time up to a cap, between half and all of it. */
function backoff(settings: Settings, number: number): number {
  const delay = Math.min(settings.firstDelay * 2 ** (number - 1), settings.longestDelay);
  return delay * (0.5 + Math.random() / 2);
}

/** Run an attempt until its time is over or the caller's signal is aborted. */
async function inTime<T>(
  timeout: number,
  signal: AbortSignal | undefined,
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  const timer = setTimeout(() => controller.abort(), timeout);
  signal?.addEventListener("abort", abort);
  try {
    return await attempt(controller.signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/**
 * Wait for some milliseconds, or until a signal is aborted.
 *
 * @internal
 * @throws the signal's reason.
 */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

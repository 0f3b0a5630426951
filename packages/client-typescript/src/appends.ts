/**
 * Appends. Each carries an idempotency key, and is repeated with it until its answer arrives: it is made once.
 */

import { errorOf, type ProblemError } from "./errors.js";
import { newKey } from "./keys.js";
import { pause } from "./retries.js";
import { pathOf, send } from "./sending.js";
import type { CallOptions, Settings } from "./settings.js";
import type { components } from "./schema.js";
import type {
  AllAppended,
  Appended,
  EachAppend,
  EventQuery,
  ExpectedVersion,
  NewEvent,
  NewUnfold,
  Problem,
  StreamAppend,
  TaggedAppended,
  Token,
} from "./types.js";

/** Options of every append under one key. */
export interface KeyedOptions extends CallOptions {
  /**
   * Names the append and its repeats, 1 to 255 visible ASCII characters; a new UUIDv7 unless given. Give one to repeat
   * the append in another call, for example after a restart: see {@link newKey}.
   */
  key?: string | undefined;
}

/** A condition of an append. */
export interface Condition {
  /** The append is refused if an event that matches lies beyond `after`. */
  failIf?: EventQuery | undefined;
  /** A position that a query or an append answered; left out, any event that matches is in the way. */
  after?: string | undefined;
}

/** Options of an append to a stream. */
export interface AppendOptions extends KeyedOptions, Condition {
  /** What the stream must be; anything unless given. */
  expected?: ExpectedVersion | undefined;
  /** State to store beside the events, in place of all that is stored; left out, what is stored stays. */
  unfolds?: NewUnfold[] | undefined;
}

/** One result of {@link EventStore.appendEach}: what the append made, or why it was not made. */
export type AppendResult =
  | (Pick<Appended, "stream" | "first" | "version" | "token" | "replayed" | "position"> & { error?: undefined })
  | { stream: string; error: ProblemError };

type Result = components["schemas"]["AppendResult"];

/** @internal */
export async function append(
  settings: Settings,
  stream: string,
  events: NewEvent[],
  options: AppendOptions,
): Promise<Appended> {
  const { expected, unfolds, failIf, after } = options;
  const path = pathOf("streams", stream, "events");
  const body = { events: events.length > 0 || !unfolds ? events : undefined, unfolds, expected, failIf, after };
  return post(settings, path, body, options);
}

/** @internal */
export async function appendAll(
  settings: Settings,
  appends: StreamAppend[],
  options: KeyedOptions & Condition,
): Promise<AllAppended> {
  const { failIf, after } = options;
  return post(settings, "/streams", { appends, failIf, after }, options);
}

/** @internal */
export async function appendTagged(
  settings: Settings,
  events: NewEvent[],
  options: KeyedOptions & Condition,
): Promise<TaggedAppended> {
  const { failIf, after } = options;
  return post(settings, "/events", { events, failIf, after }, options);
}

async function post<T>(settings: Settings, path: string, body: object, options: KeyedOptions): Promise<T> {
  const { key = newKey(), signal, correlationId } = options;
  return (await send<T>(settings, { method: "POST", path, body, key, signal, correlationId })).value;
}

/**
 * Append each for itself. A stream of which an append was not tried is sent again with all its appends, since later
 * ones may have been refused for the lack of it; what was made is recognised by its key.
 *
 * @internal
 */
export async function appendEach(
  settings: Settings,
  appends: EachAppend[],
  options: CallOptions,
): Promise<AppendResult[]> {
  const keyed = appends.map((each) => ({ ...each, idempotencyKey: each.idempotencyKey ?? newKey() }));
  const results: Result[] = [];
  let waiting = keyed.map((_, index) => index);
  for (let attempt = 1; waiting.length > 0; attempt++) {
    const { value } = await send<{ results: Result[] }>(settings, {
      ...options,
      method: "POST",
      path: "/appends",
      body: { appends: waiting.map((index) => keyed[index]) },
      appends: true,
    });
    waiting.forEach((index, place) => {
      if (!wasMade(results[index])) results[index] = value.results[place]!;
    });
    const unavailable = new Set(results.filter(({ status }) => status === 503).map(({ stream }) => stream));
    waiting = attempt < settings.attempts ? waiting.filter((index) => unavailable.has(results[index]!.stream)) : [];
    const delay = Math.min(settings.firstDelay * 2 ** attempt, settings.longestDelay);
    if (waiting.length > 0) await pause(delay, options.signal);
  }
  return results.map(resultOf);
}

function wasMade(result: Result | undefined): boolean {
  return result?.status === 201;
}

function resultOf(result: Result): AppendResult {
  const { stream, status, first, version, token, replayed, position } = result;
  if (status === 201) {
    const made = { stream, first: first!, version: version!, token: token as Token, replayed: replayed! };
    return position === undefined ? made : { ...made, position };
  }
  const error = errorOf({ instance: "", ...result } as Problem);
  error.maybeApplied = status >= 500 ? result.tried !== false : error.type === "undetermined";
  return { stream, error };
}

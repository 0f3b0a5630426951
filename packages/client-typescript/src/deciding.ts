/**
 * Decisions: load what is new, fold it, decide, and append on the token of what was folded. A conflict begins anew.
 */

import { append, type AppendOptions } from "./appends.js";
import { ConflictError, NotFoundError, PrunedError } from "./errors.js";
import { read, readHead } from "./reading.js";
import { pause } from "./retries.js";
import type { CallOptions, Settings } from "./settings.js";
import type { ExpectedVersion, NewEvent, Recorded, RecordedEvent, Token } from "./types.js";

/**
 * Rules of a stream: its state is folded from its events, and a decision returns the events that a command leads to.
 *
 * The functions must be pure: they run again after a conflict.
 */
export interface Decider<State, Command, E extends NewEvent = NewEvent> {
  /** The state without any event. */
  initial: State;
  /** Return the state after an event. */
  evolve(state: State, event: Recorded<E>): State;
  /** Return the events that a command leads to, none if there is nothing to do; throw to refuse it. */
  decide(command: Command, state: State): E[];
}

/** State that was folded from a stream up to a version. */
export interface Folded<State> {
  /**
   * The state. After a decision it includes the events that it appended; those without a `timestamp` of their own have
   * that of this machine in it, which differs a little from the stored one.
   */
  state: State;
  /** The number of events that the state was folded from, and of those pruned before them. */
  version: number;
}

/** Options of a decision. */
export interface DecideOptions<State> extends CallOptions {
  /** How often to decide at most, each time another writer was first; 10 unless given. */
  attempts?: number | undefined;
  /** A result of an earlier decision: only events after it are read. */
  known?: Folded<State> | undefined;
  /** Whether pruned events may be missing from the state; otherwise they are a {@link PrunedError}. */
  forgetPruned?: boolean | undefined;
}

/** What a decision came to. */
export interface Decided<State, E extends NewEvent> extends Folded<State> {
  /** The events that were appended; empty where there was nothing to do. */
  events: E[];
  /** The exact state of the stream; undefined where it has no event. */
  token: Token | undefined;
  /** How often the command was decided. */
  attempts: number;
}

/** @internal */
export async function decide<State, Command, E extends NewEvent>(
  settings: Settings,
  stream: string,
  decider: Decider<State, Command, E>,
  command: Command,
  options: DecideOptions<State>,
): Promise<Decided<State, E>> {
  const { attempts = 10, signal, correlationId } = options;
  let known: Folded<State> = options.known ?? { state: decider.initial, version: 0 };
  for (let attempt = 1; ; attempt++) {
    // 1. Load what is new, and fold it.
    const loaded = await load(settings, stream, decider, known, options);
    const { token } = loaded;
    known = loaded;
    // 2. Decide.
    const events = decider.decide(command, known.state);
    if (events.length === 0) return { ...known, events, token, attempts: attempt };
    // 3. Append on what was folded.
    const expected: ExpectedVersion = token ?? "no_stream";
    const appending: AppendOptions = { expected, signal, correlationId };
    try {
      const { first, version, token: next } = await append(settings, stream, events, appending);
      let { state } = known;
      for (const event of recorded(settings, stream, first, events)) state = decider.evolve(state, event);
      return { state, version, token: next, events, attempts: attempt };
    } catch (error) {
      // 4. Another writer was first: begin anew.
      if (!(error instanceof ConflictError) || attempt >= attempts) throw error;
      await pause(Math.random() * Math.min(settings.firstDelay * (attempt - 1), settings.longestDelay), signal);
    }
  }
}

/** Events as they would be read back; those without a timestamp get the moment of this machine. */
function recorded<E extends NewEvent>(settings: Settings, stream: string, first: number, events: E[]): Recorded<E>[] {
  const timestamp = new Date().toISOString();
  const stored = settings.json.parse(settings.json.stringify(events)) as E[];
  return stored.map((event, place) => {
    return { timestamp, ...event, stream, index: first + place } as unknown as Recorded<E>;
  });
}

/** Fold what a stream has beyond a state, up to one moment, of which the token is. */
async function load<State, Command, E extends NewEvent>(
  settings: Settings,
  stream: string,
  decider: Decider<State, Command, E>,
  known: Folded<State>,
  options: DecideOptions<State>,
): Promise<Folded<State> & { token: Token | undefined }> {
  const head = await readHead(settings, stream, options).catch((error: unknown) => {
    if (error instanceof NotFoundError && error.type === "stream-not-found") return undefined;
    throw error;
  });
  if (head === undefined) return { ...known, token: undefined };

  let { state, version } = known;
  const fold = (event: RecordedEvent) => {
    state = decider.evolve(state, event as Recorded<E>);
    version = event.index + 1;
  };
  if (version < head.lowWater) {
    if (!options.forgetPruned) throw new PrunedError(stream, head.lowWater);
    version = head.lowWater;
  }
  const carried = head.version - head.events.length;
  while (version < carried) {
    const before = version;
    const range = { ...options, from: version, pageSize: Math.min(carried - version, 10_000) };
    for await (const event of read(settings, stream, range)) {
      fold(event);
      if (version >= carried) break;
    }
    if (version === before) throw new PrunedError(stream, version); // pruned between the two requests
  }
  for (const event of head.events) if (event.index >= version) fold(event);
  return { state, version: Math.max(version, head.version), token: head.token };
}

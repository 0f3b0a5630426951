/**
 * Reading: events of a stream page by page, its state, and tagged events that match a query.
 */

import { withBodies } from "./bodies.js";
import { pathOf, send, type QueryValue } from "./sending.js";
import type { CallOptions, Settings } from "./settings.js";
import type { components } from "./schema.js";
import type { EventPage, EventQuery, RecordedEvent, StreamState, TaggedEvent, Token } from "./types.js";

type Schemas = components["schemas"];

/** Which events of a stream are read. */
export interface ReadOptions extends CallOptions {
  /** The index of the first event; the stream's beginning, or its end backward, unless given. */
  from?: number | undefined;
  /** `forward` unless given. */
  direction?: "forward" | "backward" | undefined;
  /** Events of a page at most, 1 to 10,000; 1,000 unless given. A page ends at 4 MB, too. */
  pageSize?: number | undefined;
  /** Only events of these types. */
  types?: readonly string[] | undefined;
  /** Only events of this moment and later. */
  since?: Date | undefined;
  /** Only events before this moment. */
  until?: Date | undefined;
}

/** Which tagged events are read. */
export interface QueryOptions extends CallOptions {
  /** Only what is new since this position. */
  after?: string | undefined;
  /** `forward` unless given; backward there is no position. */
  direction?: "forward" | "backward" | undefined;
  /** Events of a page at most, 1 to 1,000; 1,000 unless given. */
  pageSize?: number | undefined;
}

/** Tagged events that match a query. */
export interface QueryResult {
  /** In order of their places, or newest first. */
  events: TaggedEvent[];
  /** To append after, under the same query or a narrower one; null for a query backward. */
  position: string | null;
}

/** @internal */
export async function* pages(settings: Settings, stream: string, options: ReadOptions): AsyncGenerator<EventPage> {
  const { direction, pageSize, types, since, until, signal, correlationId } = options;
  const path = pathOf("streams", stream, "events");
  let from: number | null | undefined = options.from;
  while (from !== null) {
    const query: Record<string, QueryValue> = {
      from,
      limit: pageSize,
      direction,
      type: types,
      since: since?.toISOString(),
      until: until?.toISOString(),
    };
    const { value } = await send<EventPage>(settings, { method: "GET", path, query, signal, correlationId });
    yield value;
    from = value.next;
  }
}

/** @internal */
export async function* read(settings: Settings, stream: string, options: ReadOptions): AsyncGenerator<RecordedEvent> {
  for await (const page of pages(settings, stream, options)) {
    for (const event of page.events) yield await loaded(settings, event, options);
  }
}

/** Return an event of a stream with its body. */
async function loaded(settings: Settings, event: Schemas["Event"], options: CallOptions): Promise<RecordedEvent> {
  return withBodies(settings, event, () => readAlone(settings, event.stream, event.index, options), options);
}

/**
 * Read one event, which may have a link in place of its body.
 *
 * @internal
 */
export async function readAlone(
  settings: Settings,
  stream: string,
  index: number,
  { signal, correlationId }: CallOptions,
): Promise<Schemas["Event"]> {
  const path = pathOf("streams", stream, "events");
  const query = { from: index, limit: 1 };
  const { value } = await send<EventPage>(settings, { method: "GET", path, query, signal, correlationId });
  return value.events[0]!;
}

/** @internal */
export async function readState(settings: Settings, stream: string, options: CallOptions): Promise<StreamState> {
  const { events: _, unfolds, token, ...state } = await head(settings, stream, false, options);
  const again = async (type: string) =>
    (await head(settings, stream, false, options)).unfolds.find((unfold) => unfold.type === type)!;
  const whole: StreamState["unfolds"] = [];
  for (const unfold of unfolds) whole.push(await withBodies(settings, unfold, () => again(unfold.type), options));
  return { ...state, token: token as Token, unfolds: whole };
}

/**
 * Read the version, the token and the last events of a stream, in one request.
 *
 * @internal
 * @returns `events` with their bodies; those before them are not in the stream's head.
 */
export async function readHead(
  settings: Settings,
  stream: string,
  options: CallOptions,
): Promise<Pick<StreamState, "version" | "token" | "lowWater"> & { events: RecordedEvent[] }> {
  const { version, token, lowWater, events = [] } = await head(settings, stream, true, options);
  const whole: RecordedEvent[] = [];
  for (const event of events) whole.push(await loaded(settings, event, options));
  return { version, token: token as Token, lowWater, events: whole };
}

async function head(
  settings: Settings,
  stream: string,
  events: boolean,
  { signal, correlationId }: CallOptions,
): Promise<Schemas["State"]> {
  const query = events ? { events } : {};
  const path = pathOf("streams", stream);
  return (await send<Schemas["State"]>(settings, { method: "GET", path, query, signal, correlationId })).value;
}

/** @internal */
export async function queryTagged(settings: Settings, query: EventQuery, options: QueryOptions): Promise<QueryResult> {
  const { after, direction, pageSize, signal, correlationId } = options;
  const events: TaggedEvent[] = [];
  for (let from: string | undefined; ; ) {
    const body = { query, after, from, limit: pageSize, direction };
    const request = { method: "POST", path: "/events/query", body, signal, correlationId } as const;
    const { value } = await send<Schemas["TaggedEventPage"]>(settings, request);
    for (const event of value.events) {
      events.push(await withBodies(settings, event, () => readTagged(settings, event.id, options), options));
    }
    if (value.next === null) return { events, position: value.position };
    from = value.next;
  }
}

/**
 * Read one tagged event by the id that its writer chose.
 *
 * @internal
 */
export async function readTagged(
  settings: Settings,
  id: string,
  { signal, correlationId }: CallOptions,
): Promise<Schemas["TaggedEvent"]> {
  const path = pathOf("events", id);
  return (await send<Schemas["TaggedEvent"]>(settings, { method: "GET", path, signal, correlationId })).value;
}

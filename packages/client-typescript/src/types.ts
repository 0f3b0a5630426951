/**
 * Names for the shapes of the API, which are generated from its OpenAPI document into `schema.ts`.
 */

import type { components } from "./schema.js";

type Schemas = components["schemas"];

/**
 * An event to append. `type` is its only required field.
 *
 * The body is `data` (any JSON), `data64` (bytes in base64), or the `claim` of an upload; without one it is empty. A
 * request holds some 6 MB: upload larger bodies first.
 */
export type NewEvent = Schemas["NewEvent"];

/** State to store beside the events of a stream, in place of all that is stored. */
export type NewUnfold = Schemas["NewUnfold"];

/** A reference to content that was uploaded, for the field `claim` of an event. */
export type Claim = Schemas["Claim"];

/** A condition on tagged events: an event matches if it matches one of the `items`. */
export type EventQuery = Schemas["EventQuery"];

/** Names the exact state of a stream. It begins with the version, but is opaque otherwise. */
export type Token = `${number}.${string}`;

/**
 * What a stream must be for an append: a version (the number of its events), the token of an earlier answer, or a word.
 * `any` is the default.
 */
export type ExpectedVersion = number | Token | "any" | "no_stream" | "stream_exists";

/** An append as one of several; see {@link EventStore.appendAll}. */
export interface StreamAppend extends Omit<Schemas["StreamAppend"], "expected"> {
  /** What the stream must be; left out: anything. */
  expected?: ExpectedVersion;
}

/** An append among others that stand for themselves; see {@link EventStore.appendEach}. */
export interface EachAppend extends Omit<Schemas["EachAppend"], "expected"> {
  /** What the stream must be; left out: anything. */
  expected?: ExpectedVersion;
}

/** Fields of answers that name a state of a stream. */
interface Stated {
  /** The exact state of the stream, to expect with the next append. */
  token: Token;
}

/** The answer to an append. */
export type Appended = Omit<Schemas["Appended"], "token"> & Stated;

/** The answer to an append to several streams. */
export interface AllAppended extends Omit<Schemas["AllAppended"], "streams"> {
  /** What each stream got, in the order of the appends. */
  streams: (Omit<Schemas["AllAppended"]["streams"][number], "token"> & Stated)[];
}

/** The answer to an append of tagged events. */
export type TaggedAppended = Schemas["AppendedTagged"];

/** Fields that reading replaces: bodies that answers had no room for are fetched. */
type Elsewhere = "dataUrl" | "metaUrl" | "omitted";

/** An event of a stream, with its body: `data` where it is JSON, else `data64`, or neither where it is empty. */
export type RecordedEvent = Omit<Schemas["Event"], Elsewhere>;

/** A tagged event, with its body. */
export type TaggedEvent = Omit<Schemas["TaggedEvent"], Elsewhere>;

/** State that is stored beside the events of a stream. */
export type Unfold = Omit<Schemas["Unfold"], Elsewhere>;

/**
 * An item of the feed: an event of a stream, with its body where it was asked for. `pruned` and `expired` mark events
 * that are gone, `fault` one that cannot be read, and `removed` is no event but says that events are gone.
 */
export type FeedItem = Omit<Schemas["FeedItem"], Elsewhere>;

/** A page of events of a stream. */
export interface EventPage extends Omit<Schemas["EventPage"], "events"> {
  /** Events in the order asked for, whose bodies are not fetched yet. */
  events: Schemas["Event"][];
}

/** Version, token and unfolds of a stream. */
export interface StreamState extends Omit<Schemas["State"], "unfolds" | "events" | "token">, Stated {
  /** State that is stored beside the events. */
  unfolds: Unfold[];
}

/** A problem document of the API (RFC 9457), with the further fields of its type. */
export type Problem = Schemas["Problem"];

/** An event of one of an application's own types, as it is read back. */
export type Recorded<E extends { type: string }> = E extends unknown ? Omit<RecordedEvent, keyof E> & E : never;

/**
 * Client of Epochal's HTTP API, on `fetch`: for Node, workers and browsers.
 *
 * @packageDocumentation
 */

export type { AppendOptions, AppendResult, Condition, KeyedOptions } from "./appends.js";
export { bearer, type Authorize, type UnsignedRequest } from "./auth.js";
export type { Decided, DecideOptions, Decider, Folded } from "./deciding.js";
export {
  ConditionFailedError,
  ConflictError,
  ConnectionError,
  ContentError,
  EpochalError,
  GatewayError,
  InvalidInputError,
  NotFoundError,
  ProblemError,
  PrunedError,
  StreamDeletedError,
  TooLargeError,
  UnavailableError,
  UndeterminedError,
} from "./errors.js";
export type { Checkpoint, FeedBatch, FeedOptions } from "./feed.js";
export { newKey } from "./keys.js";
export type { QueryOptions, QueryResult, ReadOptions } from "./reading.js";
export type { components, operations, paths } from "./schema.js";
export { pathOf, type ApiAnswer, type ApiRequest, type QueryValue } from "./sending.js";
export type { CallOptions, ConnectOptions } from "./settings.js";
export { environmentCredentials, sigv4, type Credentials, type SigV4Options } from "./sigv4.js";
export { connect, type EventStore } from "./store.js";
export type {
  AllAppended,
  Appended,
  Claim,
  EachAppend,
  EventPage,
  EventQuery,
  ExpectedVersion,
  FeedItem,
  NewEvent,
  NewUnfold,
  Problem,
  Recorded,
  RecordedEvent,
  StreamAppend,
  StreamState,
  TaggedAppended,
  TaggedEvent,
  Token,
  Unfold,
} from "./types.js";

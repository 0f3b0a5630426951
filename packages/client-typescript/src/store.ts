import {
  append,
  appendAll,
  appendEach,
  appendTagged,
  type AppendOptions,
  type AppendResult,
  type Condition,
  type KeyedOptions,
} from "./appends.js";
import { upload } from "./bodies.js";
import { decide, type Decided, type DecideOptions, type Decider } from "./deciding.js";
import { feed, type FeedBatch, type FeedOptions } from "./feed.js";
import {
  pages,
  queryTagged,
  read,
  readState,
  type QueryOptions,
  type QueryResult,
  type ReadOptions,
} from "./reading.js";
import { send, type ApiAnswer, type ApiRequest } from "./sending.js";
import { settingsOf, type CallOptions, type ConnectOptions, type Settings } from "./settings.js";
import type {
  AllAppended,
  Appended,
  Claim,
  EachAppend,
  EventPage,
  EventQuery,
  NewEvent,
  RecordedEvent,
  StreamAppend,
  StreamState,
  TaggedAppended,
} from "./types.js";

/**
 * Connect to the HTTP API of a deployment. Nothing is sent yet.
 *
 * @throws TypeError for a `url` that is no address.
 */
export function connect(options: ConnectOptions): EventStore {
  return new EventStore(settingsOf(options));
}

/**
 * The store of a deployment.
 *
 * Every call throws a {@link ProblemError} for what the API refuses, a {@link GatewayError} for what the gateway
 * refuses, and a {@link ConnectionError} where no answer arrives. Failures that pass are repeated first: lost answers,
 * 429 and 5xx. An append is repeated with the same key, so it is made once.
 */
export class EventStore {
  readonly #settings: Settings;

  /** @internal */
  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /**
   * Append events to a stream, all or none.
   *
   * @param stream - 1 to 512 ASCII letters, digits and `- _ . : ~ @ + =`; what precedes the first `-` is its category.
   * @param events - at most 1,000. Without any, the options must have `unfolds`.
   * @throws ConflictError if the stream is not what is `expected`, ConditionFailedError if an event matches `failIf`,
   * StreamDeletedError, UndeterminedError, TooLargeError, InvalidInputError.
   */
  append(stream: string, events: NewEvent[], options: AppendOptions = {}): Promise<Appended> {
    return append(this.#settings, stream, events, options);
  }

  /**
   * Append to several streams, all or nothing.
   *
   * @param appends - at most 99, each of another stream, and 4 MB together.
   * @throws ConflictError, whose `streams` are those in the way; else as {@link append}.
   */
  appendAll(appends: StreamAppend[], options: KeyedOptions & Condition = {}): Promise<AllAppended> {
    return appendAll(this.#settings, appends, options);
  }

  /**
   * Append to streams, each append for itself: one that is refused does not stop the others. Appends to one stream are
   * made in their order.
   *
   * @param appends - at most 500, and 6 MB together. Each gets a key of its own unless it has an `idempotencyKey`.
   * @returns a result for each append, in their order: what it made, or its `error`.
   */
  appendEach(appends: EachAppend[], options: CallOptions = {}): Promise<AppendResult[]> {
    return appendEach(this.#settings, appends, options);
  }

  /**
   * Append tagged events that are in no named stream, all or none.
   *
   * @param events - at most 1,000, each with its `tags`.
   * @throws ConditionFailedError if an event matches `failIf` and lies beyond `after`; else as {@link append}.
   */
  appendTagged(events: NewEvent[], options: KeyedOptions & Condition = {}): Promise<TaggedAppended> {
    return appendTagged(this.#settings, events, options);
  }

  /**
   * Read all tagged events that match a query, at one moment, and the position to append after.
   *
   * @param query - at most 100 items, tags and types.
   */
  query(query: EventQuery, options: QueryOptions = {}): Promise<QueryResult> {
    return queryTagged(this.#settings, query, options);
  }

  /**
   * Read the events of a stream, page by page, with their bodies. Each page is strongly consistent.
   *
   * @throws NotFoundError for a stream without events, StreamDeletedError, ContentError for a body that is not what was
   * stored.
   */
  read(stream: string, options: ReadOptions = {}): AsyncGenerator<RecordedEvent, void, undefined> {
    return read(this.#settings, stream, options);
  }

  /**
   * Read the pages of a stream, which say more than its events: the stream's version, what has been pruned, and links
   * to large bodies in place of these.
   *
   * @throws as {@link read}.
   */
  pages(stream: string, options: ReadOptions = {}): AsyncGenerator<EventPage, void, undefined> {
    return pages(this.#settings, stream, options);
  }

  /**
   * Read the version, the token and the unfolds of a stream: one request, whatever its length.
   *
   * @throws NotFoundError for a stream without events, StreamDeletedError.
   */
  state(stream: string, options: CallOptions = {}): Promise<StreamState> {
    return readState(this.#settings, stream, options);
  }

  /**
   * Decide on a command: load what is new, fold it, and append what the decider returns on the token of what was
   * folded. If another writer was first, do it again.
   *
   * The first load reads the whole stream. Pass an earlier result as `known`, and later ones read what is new.
   *
   * @throws ConflictError after as many attempts as allowed, PrunedError, what the decider throws; else as
   * {@link append}.
   */
  decide<State, Command, E extends NewEvent = NewEvent>(
    stream: string,
    decider: Decider<State, Command, E>,
    command: Command,
    options: DecideOptions<State> = {},
  ): Promise<Decided<State, E>> {
    return decide(this.#settings, stream, decider, command, options);
  }

  /**
   * Follow the feed: events of all streams, a page of each partition in turn. At the tail it waits as long as the store
   * says, and goes on.
   *
   * Each event comes at least once. Store the checkpoint of a batch once its items are handled, and begin there again.
   *
   * @throws InvalidInputError for a checkpoint of another index.
   */
  feed(options: FeedOptions = {}): AsyncGenerator<FeedBatch, void, undefined> {
    return feed(this.#settings, options);
  }

  /**
   * Upload a body that is too large for a request. An event then has the answer as its `claim`, in place of `data`.
   *
   * @param content - bytes, or text such as JSON; at most 100 MB by default. What no append claims within a day
   * expires.
   * @throws TooLargeError.
   */
  upload(content: Uint8Array | string, options: CallOptions = {}): Promise<Claim> {
    return upload(this.#settings, content, options);
  }

  /**
   * Send any other request of the API, such as `{ method: "GET", path: pathOf("streams", "Order-1", "timers") }`.
   *
   * It is repeated after lost answers, 429 and 5xx: send only what may be made twice.
   */
  request<T>(request: ApiRequest): Promise<ApiAnswer<T>> {
    return send(this.#settings, request);
  }
}

/**
 * The feed: events of all streams, in partitions. A stream's events are all in one partition, in their order.
 */

import { withBodies } from "./bodies.js";
import { pause } from "./retries.js";
import { readAlone, readTagged } from "./reading.js";
import { retryAfterIn, send } from "./sending.js";
import type { CallOptions, Settings } from "./settings.js";
import type { components } from "./schema.js";
import type { FeedItem } from "./types.js";

type Schemas = components["schemas"];

/** Seconds between two requests at the tail of a partition, where an answer does not say. */
const PAUSE = 2;

/** How far a reader is: a position for each partition, by its number. Store it once the items are handled. */
export type Checkpoint = Readonly<Record<string, string>>;

/** What is read of the feed, and from where. */
export interface FeedOptions extends CallOptions {
  /**
   * Where to begin: `beginning` unless given, `tail`, a moment, or a checkpoint. Partitions that a checkpoint lacks are
   * read from their beginning.
   */
  from?: "beginning" | "tail" | Date | Checkpoint | undefined;
  /** Only streams of these categories, the text before the first `-` of their names; `$tag-course` for tags. */
  categories?: readonly string[] | undefined;
  /** Whether items have the bodies of their events; true unless given. */
  data?: boolean | undefined;
  /** Whether there are items, too, which say that events are gone. */
  removals?: boolean | undefined;
  /** Whether an event with tags comes once, and not through the stream of each tag; it needs `data`. */
  once?: boolean | undefined;
  /** Items of a page at about most, 1 to 10,000; 1,000 unless given. */
  pageSize?: number | undefined;
  /** Only these partitions; all unless given. */
  partitions?: readonly number[] | undefined;
  /**
   * Seconds, up to 20, for which the store holds a request at the tail until there is something; 0 unless given. Held
   * requests are paid for. It counts where one partition is read; several are asked in turn.
   */
  wait?: number | undefined;
  /** Whether to go on at the tail and wait for more; true unless given. */
  follow?: boolean | undefined;
}

/** Items of one partition. */
export interface FeedBatch {
  /** The partition's number. */
  partition: number;
  /** In the order of the feed; empty where nothing matched up to the checkpoint. */
  items: FeedItem[];
  /** Behind these items and all before them, of all partitions: what {@link FeedOptions.from} takes. */
  checkpoint: Checkpoint;
}

/** @internal */
export async function* feed(settings: Settings, options: FeedOptions): AsyncGenerator<FeedBatch> {
  const { signal, partitions, follow = true } = options;
  const numbers = (await partitionsOf(settings, options)).filter((number) => partitions?.includes(number) ?? true);
  let checkpoint: Checkpoint = {};
  const begins = beginningsOf(options.from);
  if (typeof begins === "object") checkpoint = begins;
  const due = new Map(numbers.map((number) => [number, 0])); // when each is asked again; in their order

  while (due.size > 0) {
    await pause(Math.max(Math.min(...due.values()) - Date.now(), 0), signal);
    for (const [partition, time] of due) {
      if (time > Date.now()) continue;
      const from = checkpoint[partition] ?? (typeof begins === "string" ? begins : "beginning");
      const { page, retryAfter } = await pageOf(settings, partition, from, numbers.length === 1, options);
      if (page.next !== from) checkpoint = { ...checkpoint, [partition]: page.next };
      const items = await itemsOf(settings, page.items, options);
      const waits = page.atTail && page.items.length === 0;
      due.set(partition, waits ? Date.now() + (retryAfter ?? PAUSE) * 1000 : 0);
      if (page.atTail && !follow) due.delete(partition);
      if (items.length > 0 || page.next !== from) yield { partition, items, checkpoint };
    }
  }
}

function beginningsOf(from: FeedOptions["from"]): string | Checkpoint {
  return from instanceof Date ? from.toISOString() : (from ?? "beginning");
}

async function partitionsOf(settings: Settings, { signal, correlationId }: CallOptions): Promise<number[]> {
  const path = "/feed";
  const { value } = await send<Schemas["PartitionTails"]>(settings, { method: "GET", path, signal, correlationId });
  return value.partitions.map(({ partition }) => partition).sort((one, other) => one - other);
}

async function pageOf(
  settings: Settings,
  partition: number,
  from: string,
  alone: boolean,
  options: FeedOptions,
): Promise<{ page: Schemas["FeedPage"]; retryAfter: number | undefined }> {
  const { categories, data = true, removals, pageSize, wait, signal, correlationId } = options;
  const query = {
    from,
    limit: pageSize,
    data: data || undefined,
    removals,
    category: categories,
    wait: alone ? wait : undefined,
  };
  const path = `/feed/${partition}`;
  const answer = await send<Schemas["FeedPage"]>(settings, { method: "GET", path, query, signal, correlationId });
  return { page: answer.value, retryAfter: retryAfterIn(answer.headers) };
}

async function itemsOf(settings: Settings, items: Schemas["FeedItem"][], options: FeedOptions): Promise<FeedItem[]> {
  const loaded: FeedItem[] = [];
  for (const item of items) {
    if (options.once && !comesOnce(item)) continue;
    loaded.push(await withBodies(settings, item, () => alone(settings, item, options), options));
  }
  return loaded;
}

/** Whether an event with tags comes through the stream that it was appended to, or else the first of its tags. */
function comesOnce({ stream, home, tags }: Schemas["FeedItem"]): boolean {
  return !tags?.length || stream === (home ?? `$tag-${tags[0]}`);
}

/** Read the event of an item alone. */
async function alone(
  settings: Settings,
  item: Schemas["FeedItem"],
  options: CallOptions,
): Promise<Schemas["FeedItem"]> {
  const tagged = item.stream.startsWith("$") && item.id !== undefined;
  const event = tagged
    ? await readTagged(settings, item.id!, options)
    : await readAlone(settings, item.stream, item.index, options);
  const { omitted: _, ...rest } = item;
  return { ...rest, ...event, stream: item.stream, index: item.index };
}

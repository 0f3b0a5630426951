// Reads events from the items of a table of streams, without Epochal: docs/reference/formats.md, section 8, in JavaScript.
//
//     aws dynamodb scan --table-name epochal-dev-streams --output json | node examples/pages_reader/read.mjs
//
// It prints each stream's version and events, and each tag's events. Bodies in the bucket are taken from `bodies`, base64
// by key, where the input has it. To write pages, use the HTTP API: the rules for that are more than the format.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { brotliDecompressSync, constants, inflateRawSync } from "node:zlib";

const TAG = "$tag-";
const UNIX = 621355968000000000n; // 100 ns from the year 1 to 1970
const { Items, items = Items, bodies = {} } = JSON.parse(readFileSync(0, "utf8"));

class Bytes {
  constructor(buffer) { this.buffer = buffer; this.at = 0; }
  take(size) {
    const part = this.buffer.subarray(this.at, (this.at += size));
    if (part.length < size) throw new Error("cut off");
    return part;
  }
  byte() { return this.take(1)[0]; }
  number() { // seven bits a byte, the lowest first
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  signed() { const n = this.number(); return n & 1n ? -(n + 1n) / 2n : n / 2n; }
  blob() { return this.take(Number(this.number())); }
  text() { return this.blob().toString("utf8"); }
  rest() { return this.take(this.buffer.length - this.at); }
}

function opened(encoding, bytes) {
  if (encoding === 0) return bytes;
  if (encoding === 1) return inflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  if (encoding === 2) return brotliDecompressSync(bytes);
  if (encoding !== 64) throw new Error(`unknown encoding ${encoding}`);
  const claim = JSON.parse(bytes);
  return opened(claim.encoding ?? 0, Buffer.from(bodies[claim.key], "base64"));
}

function timestamp(ticks) {
  const since = ticks - UNIX;
  const fraction = ((since % 10000n) + 10000n) % 10000n;
  const milliseconds = new Date(Number((since - fraction) / 10000n)).toISOString().slice(0, -1);
  return `${milliseconds}${String(fraction).padStart(4, "0")}+00:00`;
}

function label(bytes, metadata) { // what an event says of its tags, id and home
  const flags = bytes.byte(), place = Number(bytes.number());
  const tags = Array.from({ length: Number(bytes.number()) }, () => bytes.text());
  const own = { place, tags, id: flags & 1 ? bytes.take(16).toString("hex") : null };
  own.user = flags & 2 ? bytes.text() : null;
  own.bodyPage = flags & 4 ? String(bytes.number()) : null;
  own.home = flags & 64 ? [bytes.text(), Number(bytes.number())] : null;
  if (flags & 8) own.meta = opened(bytes.byte(), bytes.rest());
  return metadata ? own : { ...own, meta: undefined };
}

function contents(bytes, count, moment, inTag) { // events or unfolds, one after another
  let last = UNIX;
  return Array.from({ length: count }, () => {
    const flags = bytes.byte(), type = bytes.text();
    const event = { type, timestamp: timestamp(flags & 2 ? (last += bytes.signed()) : moment) };
    if (flags & 4) event.correlationId = bytes.text();
    if (flags & 8) event.causationId = bytes.text();
    event.data = opened(flags & 16 ? bytes.byte() : 0, bytes.blob());
    const encoding = flags & 32 ? bytes.byte() : 0;
    const meta = flags & 1 ? bytes.blob() : Buffer.alloc(0);
    if (inTag) event.label = label(new Bytes(meta), true);
    event.meta = inTag ? (event.label.meta ?? Buffer.alloc(0)) : opened(encoding, meta);
    if (flags & 64) event.label = label(new Bytes(bytes.blob()), false);
    return event;
  });
}

function frame(binary, inTag) {
  const bytes = new Bytes(Buffer.from(binary, "base64")), encoding = bytes.byte();
  const stamp = bytes.take(16), count = Number(bytes.number());
  const content = new Bytes(opened(encoding, bytes.rest()));
  const events = contents(content, count, stamp.readBigUInt64BE(), inTag);
  if (content.rest().length) throw new Error("bytes after the last event");
  return events.map((event) => ({ ...event, stamp }));
}

function uuid(hex) { return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"); }

function madeId(stamp, place) { // of an event whose caller chose none: version 5
  const number = Buffer.alloc(4);
  number.writeUInt32BE(place);
  const id = createHash("sha256").update(stamp).update(number).digest().subarray(0, 16);
  id[6] = (id[6] & 0x0f) | 0x50;
  id[8] = (id[8] & 0x3f) | 0x80;
  return id.toString("hex");
}

function shown(event, stream, index, tag) {
  const { type, timestamp, correlationId, causationId, data, meta, stamp, label } = event;
  const view = { stream, index, type, timestamp, data64: data.toString("base64"), meta64: meta.toString("base64") };
  Object.assign(view, { correlationId, causationId });
  if (label) {
    view.tags = [...(tag ? [tag] : []), ...label.tags].sort(byCodePoints);
    view.id = uuid(label.id ?? madeId(stamp, label.place));
  }
  if (label && view.tags.length) {
    const digits = [stamp.readBigUInt64BE(), stamp.readBigUInt64BE(8) % 1000000n, label.place];
    view.place = digits.map((part, at) => String(part).padStart([19, 6, 5][at], "0")).join("");
  }
  const empty = (value) => value === undefined || value === "" || value.length === 0;
  return Object.fromEntries(Object.entries(view).filter(([name, value]) => ["stream", "index"].includes(name) || !empty(value)));
}

function byCodePoints(one, other) { return Buffer.compare(Buffer.from(one), Buffer.from(other)); }

const pages = {};
for (const item of items) if (item.r) (pages[item.p.S] ??= []).push(item); // an item without `r` is no page
for (const list of Object.values(pages)) list.sort((one, other) => one.i.N - other.i.N);
const frames = (page, inTag) => (page.f?.L ?? []).flatMap((part) => frame(part.B, inTag));

function eventsOf(name) { // those that are left, with their indices
  const low = Math.max(0, ...pages[name].map((page) => Number(page.l?.N ?? 0)));
  const all = pages[name].flatMap((page) => {
    const events = frames(page, name.startsWith(TAG)), base = Number(page.n.N) - events.length;
    return events.map((event, at) => [base + at, event]);
  });
  return { low, events: all.filter(([index]) => index >= low) };
}

function unfoldsOf(list) { // those of the last page, which may be on an earlier one
  let bytes = list.at(-1).u && new Bytes(Buffer.from(list.at(-1).u.B, "base64"));
  if (!bytes) return [];
  let encoding = bytes.byte();
  if (encoding === 4) {
    const index = String(bytes.number());
    bytes = new Bytes(Buffer.from(list.find((page) => page.i.N === index).u.B, "base64"));
    encoding = bytes.byte();
  }
  const count = Number(bytes.number()), version = Number(bytes.number()), moment = bytes.take(8).readBigUInt64BE();
  const all = contents(new Bytes(opened(encoding, bytes.rest())), count, moment, false);
  return all.map(({ type, timestamp, data }) => ({ version, type, timestamp, data64: data.toString("base64") }));
}

const streams = {}, tags = {};
for (const [name, list] of Object.entries(pages)) {
  const { low, events } = eventsOf(name);
  if (name.startsWith(TAG) && name !== TAG && !name.startsWith(`${TAG}$`)) {
    const tag = name.slice(TAG.length);
    tags[tag] = events.map(([, event]) => {
      const own = event.label;
      if (own.bodyPage !== null) { // the body is with the first of its tags
        const first = TAG + [tag, ...own.tags].sort(byCodePoints)[0];
        const page = pages[first].find((other) => other.i.N === own.bodyPage);
        const whole = frames(page, true).find((other) => other.stamp.equals(event.stamp) && other.label.place === own.place);
        Object.assign(event, { data: whole.data, meta: whole.meta });
      }
      return shown(event, own.home?.[0] ?? "", own.home?.[1] ?? 0, tag);
    });
  } else if (!name.startsWith("$")) {
    const version = Number(list.at(-1).n.N), deleted = list.some((page) => page.z);
    const left = deleted ? [] : events.map(([index, event]) => shown(event, name, index));
    const unfolds = deleted ? [] : unfoldsOf(list);
    streams[name] = { version, deleted, lowWater: deleted ? version : low, unfolds, events: left };
  }
}
console.log(JSON.stringify({ streams, ...(Object.keys(tags).length ? { tags } : {}) }, null, 1));

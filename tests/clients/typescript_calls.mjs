// What the client in TypeScript does besides the cases of all clients, on a `fetch` that is made up.
//
//     node typescript_calls.mjs <client>        prints what is wrong with each claim, or null

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { pathToFileURL } from "node:url";
import { brotliCompressSync, deflateRawSync } from "node:zlib";

const client = await import(pathToFileURL(process.argv[2]).href);
const { bearer, connect, ContentError, ConnectionError, GatewayError, newKey, PrunedError } = client;

const STREAM = { stream: "Order-1", lowWater: 0 };
const APPENDED = { stream: "Order-1", first: 0, version: 1, token: "1.a", replayed: false };
const sha256 = (content) => createHash("sha256").update(content).digest("hex");
const answer = (value, status = 200, headers = {}) => () => new Response(JSON.stringify(value), { status, headers });
const page = (events, next = null) => ({ ...STREAM, version: events.length, events, next });
const event = (index, more = {}) => ({ stream: "Order-1", index, type: "A", timestamp: "", ...more });

/** A store whose requests are answered one after the other, and what it has sent. */
function storeOf(answers, options = {}) {
  const sent = [];
  const fetch = async (url, init) => {
    sent.push({ url: new URL(url), ...init });
    assert.ok(answers.length >= sent.length, `a request too many: ${init.method} ${url}`);
    return answers[sent.length - 1](init);
  };
  const store = connect({ url: "https://example.org/v1/", fetch, firstDelay: 1, longestDelay: 2, ...options });
  return { store, sent };
}

async function all(generator) {
  const values = [];
  for await (const value of generator) values.push(value);
  return values;
}

const unanswered = (init) =>
  new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));

const CLAIMS = {
  async "an aborted signal ends a call with its reason"() {
    const { store } = storeOf([unanswered]);
    const controller = new AbortController();
    const call = store.append("Order-1", [{ type: "A" }], { signal: controller.signal });
    setTimeout(() => controller.abort(new Error("enough")), 5);
    await assert.rejects(call, /^Error: enough$/);
  },
  async "an aborted signal ends the wait between two attempts"() {
    const { store, sent } = storeOf([answer({ message: "Too Many Requests" }, 429, { "retry-after": "9" })]);
    const call = store.append("Order-1", [{ type: "A" }], { signal: AbortSignal.timeout(20) });
    await assert.rejects(call, { name: "TimeoutError" });
    assert.equal(sent.length, 1);
  },
  async "a signal that is aborted before sends nothing"() {
    const { store, sent } = storeOf([]);
    await assert.rejects(store.state("Order-1", { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
    assert.equal(sent.length, 0);
  },
  async "an attempt that takes too long is a lost connection"() {
    const { store } = storeOf([unanswered, unanswered], { timeout: 5, attempts: 2 });
    await assert.rejects(store.append("Order-1", [{ type: "A" }]), (error) => {
      assert.ok(error instanceof ConnectionError && error.maybeApplied);
      return true;
    });
  },
  async "a correlation id is sent, and a path of the address is kept"() {
    const { store, sent } = storeOf([answer(APPENDED, 201)]);
    await store.append("Order-1", [{ type: "A" }], { correlationId: "c-1" });
    assert.equal(sent[0].headers["x-correlation-id"], "c-1");
    assert.equal(sent[0].url.href, "https://example.org/v1/streams/Order-1/events");
  },
  async "a token is asked for at each attempt"() {
    let number = 0;
    const auth = bearer(() => `token-${(number += 1)}`);
    const { store, sent } = storeOf([answer({ message: "" }, 500), answer(APPENDED, 201)], { auth });
    await store.append("Order-1", [{ type: "A" }]);
    assert.deepEqual(sent.map(({ headers }) => headers.authorization), ["Bearer token-1", "Bearer token-2"]);
  },
  async "names that would change the path are refused before anything is sent"() {
    for (const name of ["", ".", ".."]) {
      const { store, sent } = storeOf([]);
      await assert.rejects(store.append(name, [{ type: "A" }]), TypeError);
      assert.equal(sent.length, 0);
    }
    assert.throws(() => connect({ url: "nowhere" }), TypeError);
  },
  async "an append of unfolds alone has no events"() {
    const { store, sent } = storeOf([answer(APPENDED, 201)]);
    await store.append("Order-1", [], { unfolds: [{ type: "Summary", data: 1 }] });
    assert.deepEqual(JSON.parse(sent[0].body), { unfolds: [{ type: "Summary", data: 1 }] });
  },
  async "a Retry-After may be a date"() {
    const date = new Date(Date.now() + 1500).toUTCString();
    const { store } = storeOf([answer({ message: "" }, 503, { "retry-after": date }), answer(APPENDED, 201)]);
    const begun = Date.now();
    await store.append("Order-1", [{ type: "A" }]);
    assert.ok(Date.now() - begun >= 300);
  },
  async "an answer that is cut to no JSON is asked for again"() {
    const { store, sent } = storeOf([() => new Response("{", { status: 201 }), answer(APPENDED, 201)]);
    assert.equal((await store.append("Order-1", [{ type: "A" }])).version, 1);
    assert.equal(sent[0].headers["idempotency-key"], sent[1].headers["idempotency-key"]);
  },
  async "keys are UUIDv7s of now, and none is made twice"() {
    const before = Date.now();
    const keys = Array.from({ length: 1000 }, newKey);
    assert.equal(new Set(keys).size, 1000);
    for (const key of keys) {
      assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      const made = parseInt(key.replaceAll("-", "").slice(0, 12), 16);
      assert.ok(made >= before && made <= Date.now());
    }
  },
  async "bodies are decompressed as their links say"() {
    const text = JSON.stringify({ text: "ä".repeat(1000) });
    const [deflated, br] = [deflateRawSync(text), brotliCompressSync(text)];
    const encodings = { identity: Buffer.from(text), "deflate-raw": deflated, br };
    for (const [encoding, content] of Object.entries(encodings)) {
      const dataUrl = { url: "https://bucket.example.org/b", sha256: sha256(content), bytes: content.length, encoding };
      const { store } = storeOf([answer(page([event(0, { dataUrl, metaUrl: dataUrl })])), ...twice(content)]);
      const [read] = await all(store.read("Order-1"));
      assert.deepEqual([read.data, read.meta], [JSON.parse(text), JSON.parse(text)]);
      assert.ok(!("dataUrl" in read || "metaUrl" in read));
    }
  },
  async "a runtime without brotli says what to do, and the option does it"() {
    const content = brotliCompressSync("12.50");
    const dataUrl = { url: "https://bucket.example.org/b", sha256: sha256(content), bytes: 9, encoding: "br" };
    const { getBuiltinModule } = process;
    process.getBuiltinModule = undefined;
    try {
      const { store } = storeOf([answer(page([event(0, { dataUrl })])), ...twice(content)]);
      await assert.rejects(all(store.read("Order-1")), (error) => {
        return error instanceof ContentError && /the option brotli/.test(error.message);
      });
      const brotli = () => new TextEncoder().encode("7");
      const other = storeOf([answer(page([event(0, { dataUrl })])), ...twice(content)], { brotli });
      assert.equal((await all(other.store.read("Order-1")))[0].data, 7);
    } finally {
      process.getBuiltinModule = getBuiltinModule;
    }
  },
  async "a body that is no JSON is shown in base64"() {
    const content = Buffer.from([255, 0, 7]);
    const dataUrl = { url: "https://bucket.example.org/b", sha256: sha256(content), bytes: 3, encoding: "identity" };
    const { store } = storeOf([answer(page([event(0, { dataUrl })])), ...twice(content)]);
    assert.equal((await all(store.read("Order-1")))[0].data64, content.toString("base64"));
  },
  async "a link that has expired is asked for again"() {
    const content = Buffer.from("1");
    const dataUrl = { url: "https://bucket.example.org/b", sha256: sha256(content), bytes: 1, encoding: "identity" };
    const one = answer(page([event(0, { dataUrl })]));
    const { store, sent } = storeOf([one, () => new Response("expired", { status: 403 }), one, ...twice(content)]);
    assert.equal((await all(store.read("Order-1")))[0].data, 1);
    assert.equal(sent[2].url.search, "?from=0&limit=1");
  },
  async "a body that is gone is the bucket's refusal"() {
    const dataUrl = { url: "https://bucket.example.org/b", sha256: "", bytes: 1, encoding: "identity" };
    const { store } = storeOf([answer(page([event(0, { dataUrl })])), () => new Response("gone", { status: 404 })]);
    await assert.rejects(all(store.read("Order-1")), (error) => error instanceof GatewayError && error.status === 404);
  },
  async "an upload sends the content with the headers that it is told, and what is there already is a success"() {
    const claim = { key: "bodies/a", sha256: sha256("é"), bytes: 2 };
    const headers = { "If-None-Match": "*", "Content-Length": "2" };
    const upload = { url: "https://bucket.example.org/b", method: "PUT", headers, expiresIn: 900, claim };
    for (const status of [200, 412]) {
      const { store, sent } = storeOf([answer(upload, 201), () => new Response("", { status })]);
      assert.deepEqual(await store.upload("é"), claim);
      assert.deepEqual(JSON.parse(sent[0].body), { sha256: claim.sha256, bytes: 2 });
      assert.deepEqual(sent[1].headers, { "If-None-Match": "*" });
      assert.deepEqual([...sent[1].body], [...Buffer.from("é")]);
    }
  },
  async "numbers keep their digits with another JSON"() {
    const parse = (text) => JSON.parse(text.replace(/: ?(\d+\.\d+)/g, ':"$1"'));
    const json = { parse, stringify: () => '{"events":[12.50]}' };
    const answers = [() => new Response('{"events":[{"data": 12.50}],"next":null}')];
    const { store, sent } = storeOf([...answers, answer(APPENDED, 201)], { json });
    assert.equal((await all(store.read("Order-1")))[0].data, "12.50");
    await store.append("Order-1", []);
    assert.equal(sent[1].body, '{"events":[12.50]}');
  },
  async "a decision that needs pruned events is an error, unless they may be missing"() {
    const state = { ...STREAM, version: 3, token: "3.a", lowWater: 2, headEvents: 1, unfolds: [], events: [event(2)] };
    const decider = { initial: 0, evolve: (count) => count + 1, decide: (_, count) => [{ type: "N", data: count }] };
    await assert.rejects(storeOf([answer(state)]).store.decide("Order-1", decider, 0), PrunedError);
    const { store, sent } = storeOf([answer(state), answer({ ...APPENDED, first: 3, version: 4 }, 201)]);
    const decided = await store.decide("Order-1", decider, 0, { forgetPruned: true });
    assert.deepEqual(JSON.parse(sent[1].body), { events: [{ type: "N", data: 1 }], expected: "3.a" });
    assert.deepEqual([decided.state, decided.version], [2, 4]);
  },
  async "a decision from a known state reads only what is new"() {
    const state = { ...STREAM, version: 9, token: "9.a", headEvents: 1, unfolds: [], events: [event(8)] };
    const decider = { initial: 0, evolve: (count) => count + 1, decide: () => [] };
    const { store, sent } = storeOf([answer(state), answer(page([event(7)]))]);
    const decided = await store.decide("Order-1", decider, 0, { known: { state: 7, version: 7 } });
    assert.equal(sent[1].url.search, "?from=7&limit=1");
    assert.deepEqual([decided.state, decided.version, decided.token], [9, 9, "9.a"]);
  },
  async "what a decider throws reaches the caller, and nothing is appended"() {
    const state = { ...STREAM, version: 0, token: "0.a", headEvents: 0, unfolds: [], events: [] };
    const { store, sent } = storeOf([answer(state)]);
    const decide = () => {
      throw new Error("sold out");
    };
    await assert.rejects(store.decide("Order-1", { initial: 0, evolve: (s) => s, decide }, 0), /sold out/);
    assert.equal(sent.length, 1);
  },
  async "an event with tags comes once, through the stream it was appended to or its first tag"() {
    const items = ["$tag-a:1", "$tag-b:2", "Order-1", "$tag-a:1"].map((stream, index) => {
      return { stream, index, type: "T", tags: ["a:1", "b:2"], ...(index > 1 && { home: "Order-1" }) };
    });
    const answers = [answer({ partitions: [{ partition: 30000 }] }), answer({ items, next: "0@4", atTail: true })];
    const [batch] = await all(storeOf(answers).store.feed({ once: true, follow: false }));
    assert.deepEqual(batch.items.map(({ index }) => index), [0, 2]);
  },
  async "a feed that does not follow ends at the tail of each partition"() {
    const tail = answer({ items: [], next: "0@0", atTail: true });
    const partitions = [{ partition: 30001 }, { partition: 30000 }, { partition: 0 }];
    const { store, sent } = storeOf([answer({ partitions }), tail, tail]);
    const batches = await all(store.feed({ follow: false, partitions: [30000, 30001], from: new Date(0), wait: 5 }));
    assert.deepEqual(batches.at(-1), { partition: 30001, items: [], checkpoint: { 30000: "0@0", 30001: "0@0" } });
    assert.equal(sent[1].url.pathname, "/v1/feed/30000");
    assert.equal(sent[1].url.search, "?from=1970-01-01T00%3A00%3A00.000Z&data=true");
  },
  async "a feed of one partition lets the store wait"() {
    const answers = [answer({ partitions: [{ partition: 7 }] }), answer({ items: [], next: "0@0", atTail: true })];
    const { store, sent } = storeOf(answers);
    await all(store.feed({ follow: false, wait: 5, data: false, removals: true, pageSize: 9 }));
    assert.equal(sent[1].url.search, "?from=beginning&limit=9&removals=true&wait=5");
  },
  async "a body that had no room in the feed is read alone, a tag's by its id"() {
    const items = [
      { stream: "Order-1", index: 4, type: "A", omitted: true },
      { stream: "$tag-a:1", index: 0, type: "T", id: "e-1", tags: ["a:1"], omitted: true },
    ];
    const answers = [
      answer({ partitions: [{ partition: 7 }] }),
      answer({ items, next: "0@2", atTail: true }),
      answer(page([event(4, { data: 1 })])),
      answer({ id: "e-1", place: "1", type: "T", tags: ["a:1"], timestamp: "", data: 2 }),
    ];
    const { store, sent } = storeOf(answers);
    const [batch] = await all(store.feed({ follow: false }));
    assert.deepEqual(batch.items.map(({ data, stream, index }) => [data, stream, index]), [
      [1, "Order-1", 4],
      [2, "$tag-a:1", 0],
    ]);
    assert.equal(sent[3].url.pathname, "/v1/events/e-1");
  },
  async "an event that no answer has room for is an error, in a stream, in the feed and beside the tags"() {
    const omitted = event(0, { omitted: true });
    const tooLarge = (error) => error instanceof ContentError && /no answer has room/.test(error.message);
    const read = [answer(page([omitted])), answer(page([omitted]))];
    await assert.rejects(all(storeOf(read).store.read("Order-1")), tooLarge);
    const partitions = answer({ partitions: [{ partition: 7 }] });
    const feed = [partitions, answer({ items: [omitted], next: "0@2", atTail: true }), answer(page([omitted]))];
    await assert.rejects(all(storeOf(feed).store.feed({ follow: false })), tooLarge);
    const tagged = { id: "e-1", place: "1", type: "T", tags: ["a:1"], timestamp: "", omitted: true };
    const query = [answer({ events: [tagged], position: "p", next: null }), answer(tagged)];
    await assert.rejects(storeOf(query).store.query({ items: [{ tags: ["a:1"] }] }), tooLarge);
  },
  async "the state after a decision is folded from events as they are read back"() {
    const state = { ...STREAM, version: 0, token: "0.a", headEvents: 0, unfolds: [], events: [] };
    const { store } = storeOf([answer(state), answer(APPENDED, 201)]);
    const data = { due: new Date(0), note: undefined };
    const decider = { initial: [], evolve: (list, event) => [...list, event], decide: () => [{ type: "Due", data }] };
    const before = Date.now();
    const [folded] = (await store.decide("Order-1", decider, 0)).state;
    assert.deepEqual([folded.data, folded.index], [{ due: "1970-01-01T00:00:00.000Z" }, 0]);
    assert.ok(Date.parse(folded.timestamp) >= before && Date.parse(folded.timestamp) <= Date.now());
  },
  async "any other request may be sent"() {
    const { store, sent } = storeOf([answer({ timers: [] }, 200, { etag: '"a"' })]);
    const request = { method: "GET", path: client.pathOf("streams", "Order-1", "timers"), query: { a: ["b c", "d"] } };
    const { value, headers } = await store.request(request);
    assert.deepEqual([value, headers.get("etag")], [{ timers: [] }, '"a"']);
    assert.equal(sent[0].url.search, "?a=b%20c&a=d");
  },
};

function twice(content) {
  return [() => new Response(content), () => new Response(content)];
}

const wrong = {};
for (const [claim, hold] of Object.entries(CLAIMS)) {
  wrong[claim] = await hold().then(
    () => null,
    (error) => error.stack,
  );
}
console.log(JSON.stringify(wrong));

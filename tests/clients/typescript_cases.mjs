// Makes the calls of cases with the client in TypeScript, and prints what the caller sees.
//
//     node typescript_cases.mjs <client> < [{"url": …, "options": …, "calls": [{"append": …}, …]}, …]
//
// All calls of an entry are made one after the other; what the last one came to is printed.

import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const { bearer, connect, ConnectionError, ContentError, environmentCredentials, GatewayError, ProblemError, sigv4 } =
  await import(pathToFileURL(process.argv[2]).href);

const COUNTER = {
  initial: 0,
  evolve: (count) => count + 1,
  decide: (limit, count) => (count < limit ? [{ type: "Counted", data: { n: count } }] : []),
};

const CALLS = {
  append: (store, { stream, events, ...options }) => store.append(stream, events, options),
  append_all: (store, { appends, ...options }) => store.appendAll(appends, options),
  append_each: async (store, { appends }) => {
    const results = await store.appendEach(appends);
    return { results: results.map((result) => (result.error ? { ...result, error: seen(result.error) } : result)) };
  },
  append_tagged: (store, { events, ...options }) => store.appendTagged(events, options),
  query_tagged: (store, { query, limit, ...options }) => store.query(query, { ...options, pageSize: limit }),
  read: async (store, { stream, limit, ...options }) => {
    const events = [];
    for await (const event of store.read(stream, { ...options, pageSize: limit })) events.push(event);
    return { events };
  },
  state: (store, { stream }) => store.state(stream),
  decide: (store, { stream, limit, ...options }) => store.decide(stream, COUNTER, limit, options),
  feed: async (store, { take, ...options }) => {
    const items = [];
    for await (const batch of store.feed(options)) {
      items.push(...batch.items);
      if (items.length >= take) return { items, checkpoint: batch.checkpoint };
    }
    throw new Error("the feed ended");
  },
};

function seen(error) {
  const { maybeApplied } = error;
  if (error instanceof ConnectionError) return { type: "connection", maybeApplied };
  if (error instanceof ContentError) return { type: "content", maybeApplied };
  if (error instanceof GatewayError) {
    return { type: "gateway", status: error.status, message: error.message, maybeApplied };
  }
  if (!(error instanceof ProblemError)) throw error;
  return { ...error.problem, type: error.type, status: error.status, maybeApplied };
}

function authOf(auth) {
  if (auth?.bearer) return { auth: bearer(auth.bearer) };
  return auth?.region ? { auth: sigv4({ region: auth.region, credentials: environmentCredentials }) } : {};
}

async function play({ url, options, calls }) {
  const { attempts, timeout, auth } = options;
  const store = connect({
    url,
    firstDelay: 10,
    longestDelay: 40,
    ...authOf(auth),
    ...(attempts && { attempts }),
    ...(timeout && { timeout: timeout * 1000 }),
  });
  try {
    let value;
    for (const call of calls) {
      const [[name, words]] = Object.entries(call);
      value = await CALLS[name](store, words);
    }
    return { value };
  } catch (error) {
    return { error: seen(error) };
  }
}

const entries = JSON.parse(await text(process.stdin));
const outcomes = new Array(entries.length);
let next = 0;
async function work() {
  for (let index = next++; index < entries.length; index = next++) outcomes[index] = await play(entries[index]);
}
await Promise.all(Array.from({ length: 8 }, work));
console.log(JSON.stringify(outcomes));

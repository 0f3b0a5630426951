// The original library behind a line protocol: one JSON command a line in, one JSON answer a line out.
// Its events and aggregates are plain records here; what they mean is the test's business.
"use strict";
const readline = require("node:readline");
const { DynamoDBClient } = require("@aws-sdk/client-dynamodb");
const { EventStoreFactory } = require("event-store-adapter-js");

const [endpoint, journal, snapshot, shards] = process.argv.slice(2);
const client = new DynamoDBClient({
  endpoint,
  region: "eu-west-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});

// What each of the library's requests consumes, which it does not ask for by itself.
let consumed = 0;
client.middlewareStack.add(
  (next) => async (args) => {
    args.input.ReturnConsumedCapacity = "TOTAL";
    const result = await next(args);
    const parts = [result.output.ConsumedCapacity ?? []].flat();
    consumed += parts.reduce((sum, part) => sum + part.CapacityUnits, 0);
    return result;
  },
  { step: "initialize" },
);

const identify = ({ typeName, value }) => ({ typeName, value, asString: () => `${typeName}-${value}` });
const asEvent = ({ data }) => ({ ...data, aggregateId: identify(data.aggregateId) });
const asAggregate = ({ data }) => ({
  ...data,
  id: identify(data.id),
  withVersion(version) {
    return { ...this, version };
  },
});

const store = EventStoreFactory.ofDynamoDB(
  client,
  journal,
  snapshot,
  "journal-aid-index",
  "snapshot-aid-index",
  Number(shards),
  asEvent,
  asAggregate,
);

const event = (given) => ({ ...given, aggregateId: identify(given.aggregateId), occurredAt: new Date(given.occurredAt) });
const commands = {
  persistEvent: async (c) => store.persistEvent(event(c.event), c.version),
  persistEventAndSnapshot: async (c) =>
    store.persistEventAndSnapshot(event(c.event), { ...c.aggregate, id: identify(c.aggregate.id) }),
  getLatestSnapshotById: async (c) => (await store.getLatestSnapshotById(identify(c.id))) ?? null,
  getEventsByIdSinceSequenceNumber: async (c) =>
    store.getEventsByIdSinceSequenceNumber(identify(c.id), c.sequenceNumber),
  consumed: async () => consumed,
};

readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  const command = JSON.parse(line);
  let answer;
  try {
    answer = { result: (await commands[command.call](command)) ?? null };
  } catch (error) {
    answer = { error: error.constructor.name, message: error.message };
  }
  process.stdout.write(`${JSON.stringify({ id: command.id, ...answer })}\n`);
});

// What Castore's adapter for DynamoDB would put into its table: the items of `items.jsonl`, a line each.
//
//     npm install @castore/core@2.4.2 @castore/event-storage-adapter-dynamodb@2.4.2 @aws-sdk/client-dynamodb @aws-sdk/util-dynamodb
//     node write.cjs > items.jsonl
const { DynamoDBSingleTableEventStorageAdapter } = require("@castore/event-storage-adapter-dynamodb");

const items = [];
const client = { send: async (command) => items.push(command.input.Item) };
const adapter = new DynamoDBSingleTableEventStorageAdapter({ tableName: "events", dynamoDBClient: client });
const at = (second) => `2024-01-02T03:04:0${second}.123Z`;

async function main() {
  const push = (store, event) => adapter.pushEvent(event, { eventStoreId: store });
  await push("POKEMONS", { aggregateId: "pikachu1", version: 1, type: "POKEMON_APPEARED", timestamp: at(1), payload: { name: "Pikachu", level: 42, ratio: 1.5 }, metadata: { trigger: "random" } });
  await push("POKEMONS", { aggregateId: "pikachu1", version: 2, type: "POKEMON_CAUGHT", timestamp: at(3), payload: { by: ["ash"], shiny: false, nothing: null } });
  await push("TRAINERS", { aggregateId: "ash-1", version: 1, type: "GAME_STARTED", timestamp: at(0) });
  for (const item of items) console.log(JSON.stringify(item));
}

main();

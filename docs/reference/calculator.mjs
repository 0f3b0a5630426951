// What events cost a month, in dollars, by component. The prices and assumptions are those of bench/bill.py, to which
// tests/docs/test_calculator.py holds this file; docs/reference/cost.md has where they come from.
export const PRICES = {
  gateway: 1.0e-6,
  invocation: 0.2e-6,
  gigabyteSecond: 13.3334e-6,
  writeUnit: 0.625e-6,
  readUnit: 0.125e-6,
  publish: 0.3e-6,
  message: 1.0e-6, // of a FIFO queue, received and deleted
  logged: 0.5e-9,
  sent: 0.09e-9,
  stored: 0.25e-9, // a byte for a month
};
const SECONDS = { append: 0.01, further: 0.002, replay: 0.01, feed: 0.02, reaction: 0.03 };
const ACCESS_LINE = 310;
const MONTH = 30 * 24 * 3600;

// Half of the JSON, once compressed, and what a frame, a page and their share of an index's entry take.
export const stored = (bytes) => 70 + bytes / 2;

export function bill({ events, bytes, together = 1, bulk = 1, loads = 0, keyed = 0, reactions = 0, door = "gateway", window = 1 }) {
  const appends = events / together;
  // Of a bulk each append is to a stream of its own: to one stream they take fewer units.
  const requests = door === "library" ? 0 : appends * (1 / bulk + loads);
  const further = door === "library" ? 0 : appends * (1 - 1 / bulk) * SECONDS.further;
  const item = stored(bytes * together);
  // The indexer gathers what comes within its window; what comes alone is indexed alone.
  const batches = appends / Math.max(1, Math.round((appends / MONTH) * window));
  return {
    "API Gateway": door === "gateway" ? requests * PRICES.gateway : 0,
    "Lambda": requests * (PRICES.invocation + SECONDS.append * PRICES.gigabyteSecond) + further * PRICES.gigabyteSecond,
    "DynamoDB: appends": appends * (Math.max(1, Math.ceil(item / 1024)) + keyed) * PRICES.writeUnit,
    "DynamoDB: loads": appends * (loads + 0.2) * PRICES.readUnit,
    "access log, answers": requests * ((door === "gateway" ? ACCESS_LINE : 0) * PRICES.logged + 200 * PRICES.sent),
    "feed": batches * (2 * (PRICES.invocation + SECONDS.feed * PRICES.gigabyteSecond)
      + PRICES.writeUnit + PRICES.readUnit + PRICES.publish),
    // A batch wakes each reaction: its place is read and written, the index is read, and each stream of the batch.
    "reactions": reactions * (batches * (PRICES.message + PRICES.invocation + SECONDS.reaction * PRICES.gigabyteSecond
      + PRICES.writeUnit + 2 * PRICES.readUnit) + appends * PRICES.readUnit),
    "a month of storage": appends * item * PRICES.stored,
  };
}

export const total = (found) => Object.values(found).reduce((sum, each) => sum + each, 0);

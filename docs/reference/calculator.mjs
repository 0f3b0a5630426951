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
  lease: 0.5e-6, // a request to a FIFO queue, for what an invocation was given of it
  logged: 0.5e-9,
  sent: 0.09e-9,
  stored: 0.25e-9, // a byte for a month
  seldom: 0.1e-9, // in Standard-IA, whose units are a quarter dearer
  restored: 0.2e-9, // recovery to any second
};
const ALARMS = { stage: 8.3, reaction: 0.9 };

// Three services, as bench/services.py has them.
export const SERVICES = {
  shop: { events: 2592000, bytes: 300, keyed: 1, loads: 1, reactions: 1, months: 12 },
  fleet: { events: 2592000000, bytes: 300, together: 10, loads: 0, window: 10, reactions: 2, months: 3 },
  archive: { events: 10368000, bytes: 300, loads: 0, window: 10, months: 120, kept: "seldom" },
};
const SECONDS = { append: 0.01, further: 0.002, replay: 0.01, feed: 0.03, reaction: 0.03 };
const ACCESS_LINE = 200;
const MONTH = 30 * 24 * 3600;

// Half of the JSON, once compressed, a third of what goes with it, and what a frame, a page, the item and their share of
// an index's entry take.
export const stored = (bytes, together = 1) => 110 + bytes / 2 + (together - 1) * bytes / 3;

export function bill({ events, bytes, together = 1, bulk = 1, loads = 0, keyed = 0, reactions = 0, door = "gateway", window = 1,
  months = 1, kept = "standard" }) {
  const appends = events / together;
  // Of a bulk each append is to a stream of its own: to one stream they take fewer units.
  const requests = door === "library" ? 0 : appends * (1 / bulk + loads);
  const further = door === "library" ? 0 : appends * (1 - 1 / bulk) * SECONDS.further;
  const item = stored(bytes, together);
  const stays = appends * item * months;
  const dearer = kept === "seldom" ? 1.25 : 1;
  // The indexer gathers what comes within its window; what comes alone is indexed alone.
  const batches = appends / Math.max(1, Math.round((appends / MONTH) * window));
  return {
    "API Gateway": door === "gateway" ? requests * PRICES.gateway : 0,
    "Lambda": requests * (PRICES.invocation + SECONDS.append * PRICES.gigabyteSecond) + further * PRICES.gigabyteSecond,
    "DynamoDB: appends": appends * (Math.max(1, Math.ceil(item / 1024)) + keyed) * PRICES.writeUnit * dearer,
    "DynamoDB: loads": appends * (loads + 0.2) * PRICES.readUnit * dearer,
    "access log, answers": requests * ((door === "gateway" ? ACCESS_LINE : 0) * PRICES.logged + 200 * PRICES.sent),
    "feed": batches * (PRICES.invocation + SECONDS.feed * PRICES.gigabyteSecond
      + PRICES.writeUnit + PRICES.readUnit + PRICES.publish),
    // A batch wakes each reaction: its place is read and written, the index is read, and each stream of the batch.
    "reactions": reactions * (batches * (PRICES.message + PRICES.lease + PRICES.invocation + SECONDS.reaction * PRICES.gigabyteSecond
      + PRICES.writeUnit + 2 * PRICES.readUnit) + appends * PRICES.readUnit),
    "storage": stays * (kept === "seldom" ? PRICES.seldom : PRICES.stored),
    "recovery to any second": stays * PRICES.restored,
    "alarms, dashboard": ALARMS.stage + reactions * ALARMS.reaction,
  };
}

export const total = (found) => Object.values(found).reduce((sum, each) => sum + each, 0);

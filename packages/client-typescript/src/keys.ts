/**
 * Make an idempotency key for one append and its repeats: a UUIDv7 of now, which the store keeps no record of.
 *
 * Make the key just before the first call, and keep it for the repeats. The store refuses a key whose time is more than
 * five minutes ahead of its own clock.
 */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  let time = Date.now();
  for (let index = 5; index >= 0; index--) {
    bytes[index] = time % 256;
    time = Math.floor(time / 256);
  }
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * Write bytes in hex.
 *
 * @internal
 */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A plugin of the CDK command line: credentials for whatever account a stack names, and no long waits.
// The embedded AWS takes twelve digits for a key, and for the account that it is of.

// Whether a stack is there, the command line asks every five seconds; here one takes less than one.
const ASKED = 5_000, ASK = 100;
const wait = globalThis.setTimeout;

function shorter(callback, milliseconds, ...args) {
  const asking = milliseconds === ASKED && /\bwaitFor\b/.test(new Error().stack);
  return wait(callback, asking ? ASK : milliseconds, ...args);
}

module.exports = {
  version: "1",
  init(host) {
    globalThis.setTimeout = Object.assign(shorter, wait);
    host.registerCredentialProviderSource({
      name: "the embedded AWS",
      isAvailable: async () => true,
      canProvideCredentials: async (account) => /^\d{12}$/.test(account),
      getProvider: async (account) => ({ accessKeyId: account, secretAccessKey: "test" }),
    });
  },
};

// A plugin of the CDK command line: credentials for whatever account a stack names.
// The embedded AWS takes twelve digits for a key, and for the account that it is of.
module.exports = {
  version: "1",
  init(host) {
    host.registerCredentialProviderSource({
      name: "the embedded AWS",
      isAvailable: async () => true,
      canProvideCredentials: async (account) => /^\d{12}$/.test(account),
      getProvider: async (account) => ({ accessKeyId: account, secretAccessKey: "test" }),
    });
  },
};

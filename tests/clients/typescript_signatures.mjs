// Signs requests with the client in TypeScript at a given moment, and prints the headers that are added.
//
//     node typescript_signatures.mjs <client> < [{"method": …, "url": …, "credentials": …, …}, …]

import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const { signedHeaders } = await import(new URL("sigv4.js", pathToFileURL(process.argv[2])).href);

const signed = [];
for (const entry of JSON.parse(await text(process.stdin))) {
  const { method, url, headers, body, credentials, region, service, moment } = entry;
  const request = { method, url: new URL(url), headers, body };
  signed.push(await signedHeaders(request, credentials, region, service, new Date(moment)));
}
console.log(JSON.stringify(signed));

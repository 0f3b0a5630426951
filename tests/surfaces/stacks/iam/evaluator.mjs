// Decides requests by identity policies: reads {policies, requests} as JSON, and writes a list of decisions.
import { readFileSync } from "node:fs";
import { runSimulation } from "@cloud-copilot/iam-simulate";

const ACCOUNT = "123456789012";
const { policies, requests } = JSON.parse(readFileSync(0, "utf-8"));
const everything = { Version: "2012-10-17", Statement: [{ Effect: "Allow", Action: "*", Resource: "*" }] };
const organization = [{ orgIdentifier: "o-1", policies: [{ name: "everything", policy: everything }] }];

const decide = async ({ role, action, resource, context }) => {
  const answer = await runSimulation(
    {
      request: {
        principal: `arn:aws:iam::${ACCOUNT}:role/${role}`,
        action,
        resource: { resource, accountId: ACCOUNT },
        contextVariables: context,
      },
      identityPolicies: policies[role],
      serviceControlPolicies: organization,
      resourceControlPolicies: [],
    },
    {},
  );
  return answer.resultType === "error" ? `error: ${JSON.stringify(answer.errors)}` : answer.overallResult;
};

console.log(JSON.stringify(await Promise.all(requests.map(decide))));

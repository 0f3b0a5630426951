"""The real stacks, deployed by the real command line."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from epochal.contrib.local import cdk
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.endpoint import KEY, SECRET
from epochal.contrib.local.programs import Places

WAITING = """
const waited = [], [, plugin, commandLine] = process.argv;
globalThis.setTimeout = (_, milliseconds) => waited.push(milliseconds);
require(plugin).init({ registerCredentialProviderSource() {} });
const text = require("fs").readFileSync(commandLine, "utf8");
eval(/async function waitFor\\(.*?\\n}/s.exec(text)[0] + "waitFor(async () => undefined)");
setTimeout(() => {}, 5000);
setImmediate(() => console.log(JSON.stringify(waited)));
"""


def test_a_deployment_names_tables_and_a_bucket_that_are_there(deployment: LocalDeployment) -> None:
    tables = deployment.endpoint.client("dynamodb").list_tables()["TableNames"]
    assert {deployment.settings.table("tips"), deployment.settings.index_table} <= set(tables)
    deployment.endpoint.client("s3").head_bucket(Bucket=deployment.settings.bucket)


def test_a_signed_request_to_the_api_url_is_answered(deployment: LocalDeployment) -> None:
    signed = AWSRequest("GET", f"{deployment.api_url}/health")
    SigV4Auth(Credentials(KEY, SECRET), "execute-api", deployment.endpoint.region).add_auth(signed)
    request = urllib.request.Request(signed.url, headers=dict(signed.headers))
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def test_an_unsigned_request_is_refused(deployment: LocalDeployment) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{deployment.api_url}/health")


def test_the_auditor_may_ask_how_the_mappings_are_and_tells_of_one_that_is_disabled(
    deployment: LocalDeployment,
) -> None:
    functions, logs = (deployment.endpoint.client(name) for name in ("lambda", "logs"))
    listed = functions.list_event_source_mappings(FunctionName="epochal-dev-indexer")["EventSourceMappings"]
    mapping = listed[0]["UUID"]
    began = int(time.time() * 1_000)  # other tests disable mappings, too

    def told(times: int) -> bool:
        for _ in range(times):
            answer = functions.invoke(FunctionName="epochal-dev-auditor", Payload=b"{}")
            assert "FunctionError" not in answer, answer["Payload"].read()
            found = logs.filter_log_events(logGroupName="/aws/lambda/epochal-dev-auditor", startTime=began)[
                "events"
            ]
            if any(mapping in each["message"] for each in found):
                return True
            time.sleep(0.2)
        return False

    assert not told(times=3)  # what it prints late is in the log of a later invocation
    functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    try:
        assert told(times=100)
    finally:
        functions.update_event_source_mapping(UUID=mapping, Enabled=True)


@pytest.fixture
def addresses(deployment: LocalDeployment) -> Iterator[dict[str, str]]:
    """Of two functions, as `-c api=urls` gives them, reached without a name server."""
    functions, base = deployment.endpoint.client("lambda"), deployment.endpoint.url
    made = {}
    for name in ("append", "replay"):
        answer = functions.create_function_url_config(FunctionName=f"epochal-dev-{name}", AuthType="AWS_IAM")
        identity = answer["FunctionUrl"].removeprefix("https://").partition(".")[0]
        made[name] = f"{base}/_aws/lambda-url/{identity}"
    yield made
    for name in made:
        functions.delete_function_url_config(FunctionName=f"epochal-dev-{name}")


def test_functions_answer_signed_requests_at_addresses_of_their_own(
    deployment: LocalDeployment, addresses: dict[str, str]
) -> None:
    def ask(method: str, url: str, body: object = None) -> dict[str, object]:
        content = b"" if body is None else json.dumps(body).encode()
        signed = AWSRequest(method, url, headers={"Content-Type": "application/json"}, data=content)
        SigV4Auth(Credentials(KEY, SECRET), "lambda", deployment.endpoint.region).add_auth(signed)
        request = urllib.request.Request(url, content or None, dict(signed.headers), method=method)
        with urllib.request.urlopen(request) as answer:
            found: dict[str, object] = json.loads(answer.read())
            return found

    stream = "/streams/Addressed-1/events"
    assert ask("POST", addresses["append"] + stream, {"events": [{"type": "A"}]})["version"] == 1
    assert ask("GET", addresses["replay"] + stream)["version"] == 1
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask("GET", addresses["append"] + stream)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(addresses["replay"] + stream)


def test_the_command_line_soon_asks_again_whether_a_stack_is_there_and_waits_as_ever_for_all_else(
    places: Places,
) -> None:
    """What its own function waits, with the plugin."""
    program, *_ = cdk.command_line(places)
    own = places.root / "node_modules" / "aws-cdk" / "lib" / "index.js"
    ran = subprocess.run(
        [program, "--eval", WAITING, str(cdk.ACCOUNTS), str(own)], capture_output=True, text=True, check=True
    )
    assert sorted(json.loads(ran.stdout)) == [100, 5000]

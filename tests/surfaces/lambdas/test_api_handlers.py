"""The API's functions as Lambda starts them: a fresh process, the function's own folder, the library beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from epochal.settings import variable
from tests.support.api import gateway_event

ROOT = Path(__file__).parents[3]
FUNCTIONS = ("append", "replay", "feed")

EMBEDDED = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
    "AWS_DISABLE_HOST_PREFIX_INJECTION": "true",
    "AWS_LAMBDA_FUNCTION_NAME": "append",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
    "AWS_REGION": "eu-central-1",
    "AWS_SESSION_TOKEN": "test",
}
"""What ministack tells a function of AWS."""

NOT_ON_THE_WAY = (
    "aws_cdk",
    "aws_lambda_powertools",
    "aws_xray_sdk",
    "boto3",
    "botocore",
    "click",
    "epochal.cli",
    "epochal.http.openapi",
    "epochal.http.client_profile",
    "epochal.contrib.sekiban.http.operations",
    "epochal.contrib.sekiban.http.tagged",
    "epochal.http.tag_views",
    "epochal.http.tagged",
    "epochal.http.tagged_requests",
    "epochal.http.tagged_views",
    "epochal.contrib.local",
    "epochal.contrib.otel.tracing",
    "epochal.testing",
    "fastjsonschema",
    "jsonschema",
    "multiprocessing",
    "opentelemetry",
    "pydantic",
    "requests",
    "rich",
    "s3transfer",
    "urllib3",
)
"""What would lengthen every cold start: validators, tools, and boto3, which nothing needs before a body is too large
for an item.
"""


def in_a_fresh_process(function: str, code: str, **environment: str) -> Any:
    """What `code` prints last, as JSON."""
    paths = (ROOT / "lambdas" / function, ROOT / "layers" / "epochal" / "python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            variable("tips_table"): "tips",
            variable("index_table"): "index",
            variable("bucket"): "bucket",
            variable("tips_partitions"): "2",
            variable("journal_table"): "journal",
            variable("snapshot_table"): "snapshot",
            variable("aggregate_types"): "order,user-account",
            variable("journal_shards"): "8",
            variable("streams_table"): "streams",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@cache
def started(function: str) -> tuple[dict[str, str], list[bool]]:
    """The modules of a function that has started, and whether its collector runs and has set them aside."""
    files = "{name: getattr(each, '__file__', None) for name, each in sys.modules.items()}"
    collector = "[gc.isenabled(), gc.get_freeze_count() > 0]"
    loaded, collecting = in_a_fresh_process(
        function, f"import handler, gc, json, sys; print(json.dumps([{files}, {collector}]))"
    )
    return loaded, collecting


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_heavy_is_imported(function: str) -> None:
    loaded, _ = started(function)
    heavy = {name for name in loaded if name.startswith(tuple(f"{each}." for each in NOT_ON_THE_WAY))}
    assert heavy | set(loaded) & set(NOT_ON_THE_WAY) == set()


@pytest.mark.parametrize(
    ("told", "client"),
    [
        ({}, False),
        (EMBEDDED, False),
        ({variable("carrier"): "boto3"}, True),
        ({"AWS_USE_FIPS_ENDPOINT": "true"}, True),
    ],
    ids=["by default", "on the embedded AWS", "asked for", "out of the ordinary"],
)
@pytest.mark.slow
def test_a_client_of_boto3s_is_made_where_it_is_asked_for_or_needed(
    told: dict[str, str], client: bool
) -> None:
    code = "import handler, json, sys; print(json.dumps('botocore.client' in sys.modules))"
    assert in_a_fresh_process("append", code, **told) is client


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.slow
def test_the_collector_runs_again_once_everything_is_imported(function: str) -> None:
    assert started(function)[1] == [True, True]


@pytest.mark.parametrize(
    ("function", "method", "path"),
    [
        ("append", "DELETE", "/streams/$x"),
        ("append", "DELETE", "/tips/$x"),
        ("append", "POST", "/streams"),
        ("replay", "GET", "/streams/$x"),
        ("replay", "GET", "/tips/$x"),
        ("feed", "GET", "/feed/x"),
        ("append", "POST", "/aggregates/invoice/1/events"),
        ("replay", "GET", "/aggregates/invoice/1"),
        ("append", "POST", "/events"),
        ("replay", "GET", "/events/1"),
        ("append", "POST", "/dcb/events"),
        ("replay", "GET", "/dcb/events/1"),
        ("append", "DELETE", "/projections/a/b\n"),
        ("replay", "GET", "/projections/a\n"),
    ],
)
@pytest.mark.slow
def test_a_handler_answers_the_gateways_events(function: str, method: str, path: str) -> None:
    """With input that is refused before AWS is asked for anything, since here there is none."""
    code = f"""
import handler, json
class Context:
    def get_remaining_time_in_millis(self):
        return 28000
print(json.dumps(handler.handler(json.loads({json.dumps(gateway_event(method, path))!r}), Context())))
"""
    answer = in_a_fresh_process(
        function, code, **{variable(name): "t" for name in ("tags_table", "projection_states_table")}
    )
    assert answer["statusCode"] == 400
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    assert json.loads(answer["body"])["type"] == "urn:epochal:problem:invalid-input"


@pytest.mark.slow
def test_the_feed_has_the_partitions_that_its_deployment_says() -> None:
    code = (
        "import handler, json; print(json.dumps(handler.deployment.settings.partitions('tips_partitions')))"
    )
    assert in_a_fresh_process("feed", code, **{variable("tips_partitions"): "7"}) == 7


@pytest.mark.slow
@pytest.mark.parametrize(("store", "loaded"), [("streams", False), ("tips", True)], ids=["streams", "tips"])
def test_a_request_on_streams_imports_nothing_of_tips_and_one_on_tips_does(store: str, loaded: bool) -> None:
    """Functions start with streams, which any stage has that does not leave them out; tips come with a request."""
    code = f"""
import json, sys
from epochal.deployment import Deployment
from epochal.http.gateway import serve
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.testing.stores import MemoryBucket
from epochal.testing.memory import MemoryTables

class Context:
    def get_remaining_time_in_millis(self):
        return 28000

names = [KeyAttribute(name="p", type="S"), KeyAttribute(name="i", type="N")]
tables = MemoryTables(dict.fromkeys(("streams", "tips"), TableSpec(kind="t", partition=names[0], sort=names[1])))
deployment = Deployment(
    settings=Settings.of(streams_table="streams", tips_table="tips"),
    driver=Driver(execute=tables.execute, meter=Meter()),
    bucket=MemoryBucket(),
)
append, replay = serve("append", deployment), serve("replay", deployment)
sent = json.loads({json.dumps(gateway_event("POST", f"/{store}/A-1/events", b'{"events":[{"type":"E"}]}'))!r})
assert append(sent, Context())["statusCode"] == 201
for path in ("/{store}/A-1", "/{store}/A-1/events"):
    sent = json.loads({json.dumps(gateway_event("GET", "PATH"))!r}.replace("PATH", path))
    assert replay(sent, Context())["statusCode"] == 200
print(json.dumps([each for each in sys.modules if each.startswith("epochal.contrib.equinox.")]))
"""
    assert (in_a_fresh_process("append", code) != ["epochal.contrib.equinox.plugin"]) is loaded


@pytest.mark.slow
@pytest.mark.parametrize("function", ["append", "replay", "feed"])
def test_a_cold_start_imports_nothing_of_layouts_without_a_table(function: str) -> None:
    code = f"""
import json, sys
from epochal.deployment import Deployment
from epochal.http.gateway import serve
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.testing.stores import MemoryBucket
from epochal.testing.memory import MemoryTables

deployment = Deployment(
    settings=Settings.of(streams_table="streams", index_table="index"),
    driver=Driver(execute=MemoryTables({{}}).execute, meter=Meter()),
    bucket=MemoryBucket(),
)
serve({function!r}, deployment)
layouts = ("equinox", "event_store_adapter", "sekiban")
print(json.dumps([each for each in sys.modules if any(f"contrib.{{name}}" in each for name in layouts)]))
"""
    assert in_a_fresh_process(function, code) == []


@pytest.mark.parametrize("function", ["append", "replay"])
@pytest.mark.slow
def test_aggregates_have_the_tables_and_shards_that_their_deployment_says(function: str) -> None:
    code = """
import handler, json
from epochal.contrib.event_store_adapter.http import operations
site = operations.opened(handler.deployment).store.site
print(json.dumps([site.journal, site.snapshot, site.keys.shards]))
"""
    assert in_a_fresh_process(function, code) == ["journal", "snapshot", 8]


@pytest.mark.parametrize("function", ["append", "replay"])
@pytest.mark.slow
def test_tagged_events_and_states_have_what_their_deployment_says(function: str) -> None:
    code = """
import handler, json
from epochal.contrib.sekiban.http import operations as projections
from epochal.http import tagged
tagged, states = tagged.opened(handler.deployment, "dcb").store, projections.opened(handler.deployment).states
site, keys = tagged.site, tagged.site.keys
print(json.dumps([site.events, site.tags, site.type_heads, keys.shards, keys.service, states.table, states.prefix]))
"""
    told = {
        variable("events_table"): "events",
        variable("tags_table"): "tags",
        variable("type_heads"): "true",
        variable("write_shards"): "4",
        variable("service"): "acme",
        variable("projection_states_table"): "states",
        variable("states_prefix"): "kept",
    }
    assert in_a_fresh_process(function, code, **told) == ["events", "tags", True, 4, "acme", "states", "kept"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_handler_is_wiring_and_one_call(function: str) -> None:
    source = (ROOT / "lambdas" / function / "handler.py").read_text()
    assert not any(word in source for word in ("def ", "class ", " if ", " for ", "try:"))

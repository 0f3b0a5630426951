"""The API stack: routes as the library has them, and no way in without credentials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.bill import ACCESS_LINE, PRICES
from epochal.cdk.parts import api
from epochal.cdk.parts.api import ACCESS_LOG
from epochal.cdk.parts.layers import SCHEMAS
from epochal.cdk.stage_rules import LIMITS
from epochal.cdk.stages import STAGES
from epochal.feed.waiting import LONGEST_POLL
from epochal.http.operation import Operation
from epochal.http.routes import operations
from epochal.settings import REQUEST_SECONDS, WAIT_SECONDS, Settings
from stacks.stages import stage_from
from tests.surfaces.stacks.templates import CHOSEN, ROOT, Deployment, Synthesise

ROUTE = "AWS::ApiGatewayV2::Route"
FUNCTION = "AWS::Lambda::Function"
EVENTS = {
    "EPOCHAL_CARRIER",
    "EPOCHAL_EQUINOX",
    "EPOCHAL_TIPS_TABLE",
    "EPOCHAL_JOURNAL_TABLE",
    "EPOCHAL_SNAPSHOT_TABLE",
    "EPOCHAL_AGGREGATE_TYPES",
    "EPOCHAL_JOURNAL_KEYS",
    "EPOCHAL_JOURNAL_SERIALIZER",
    "EPOCHAL_JOURNAL_SHARDS",
    "EPOCHAL_EVENTS_TABLE",
    "EPOCHAL_TAGS_TABLE",
    "EPOCHAL_STREAMS_TABLE",
    "EPOCHAL_SERVICE",
}
STATES = {
    "EPOCHAL_TAGGED_EVERYTHING",
    "EPOCHAL_TYPE_HEADS",
    "EPOCHAL_WRITE_SHARDS",
    "EPOCHAL_PROJECTION_STATES_TABLE",
    "EPOCHAL_STATES_PREFIX",
}
FEED = {
    "EPOCHAL_INDEX_TABLE",
    "EPOCHAL_TIPS_PARTITIONS",
    "EPOCHAL_JOURNAL_PARTITIONS",
    "EPOCHAL_DCB_PARTITIONS",
    "EPOCHAL_PAGES_PARTITIONS",
}
WRITES = {
    "EPOCHAL_CALVING",
    "EPOCHAL_CALVING_MAX_BYTES",
    "EPOCHAL_CALVING_MAX_EVENTS",
    "EPOCHAL_MAX_UPLOAD_BYTES",
    "EPOCHAL_SNAPSHOT_COPIES",
    "EPOCHAL_SNAPSHOT_TTL_DAYS",
    "EPOCHAL_STATE_INLINE_BYTES",
}
LOGGED = {"log_days": 14, "log_level": "WARNING"}


def routes(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """Routes of the API by key."""
    found = deployment.of_type("api", ROUTE).values()
    return {each["Properties"]["RouteKey"]: each["Properties"] for each in found}


def test_the_gateway_has_the_librarys_routes_and_no_others(synthesise: Synthesise) -> None:
    assert set(routes(synthesise())) == {route.key for route in operations()}


@pytest.mark.parametrize("route", operations(), ids=lambda route: route.key)
def test_a_route_leads_to_its_function(synthesise: Synthesise, route: Operation) -> None:
    deployment = synthesise()
    target = routes(deployment)[route.key]["Target"]["Fn::Join"][1][1]["Ref"]
    integration = deployment.of_type("api", "AWS::ApiGatewayV2::Integration")[target]["Properties"]
    function = integration["IntegrationUri"]["Fn::GetAtt"][0]
    assert (
        deployment.of_type("api", FUNCTION)[function]["Properties"]["FunctionName"]
        == f"epochal-dev-{route.function}"
    )
    assert integration["PayloadFormatVersion"] == "2.0"


@pytest.mark.parametrize("stage", ["dev", "staging", "prod"])
def test_every_route_wants_a_signature(synthesise: Synthesise, stage: str) -> None:
    assert {each["AuthorizationType"] for each in routes(synthesise(stage)).values()} == {"AWS_IAM"}


def test_with_an_issuer_every_route_wants_its_token_for_the_audience(synthesise: Synthesise) -> None:
    deployment = synthesise(**CHOSEN)
    ((name, authorizer),) = deployment.of_type("api", "AWS::ApiGatewayV2::Authorizer").items()
    found = routes(deployment).values()
    assert {each["AuthorizationType"] for each in found} == {"JWT"}
    assert [each["AuthorizerId"] for each in found] == [{"Ref": name}] * len(operations())
    assert authorizer["Properties"]["JwtConfiguration"] == {
        "Issuer": "https://issuer.example/pool",
        "Audience": ["epochal"],
    }
    assert authorizer["Properties"]["IdentitySource"] == ["$request.header.Authorization"]


def test_a_token_needs_the_scope_of_the_route_as_the_issuer_calls_it(synthesise: Synthesise) -> None:
    scopes = CHOSEN["jwt_scopes"]
    found = routes(synthesise(**CHOSEN))
    for route in operations():
        assert found[route.key]["AuthorizationScopes"] == scopes.get(route.scope, [route.scope])


@pytest.mark.parametrize("route", operations(), ids=lambda route: route.key)
def test_where_the_stage_names_no_scopes_a_token_needs_the_routes_own(route: Operation) -> None:
    """Without one the gateway would take any token of the issuer's for any route."""
    issued = {"dev": {"jwt_issuer": "https://issuer.example", "jwt_audience": ["epochal"]}}
    assert api._scopes(stage_from("dev", issued), route) == [route.scope]  # noqa: SLF001  synthesis takes seconds


def test_the_api_is_throttled_as_a_whole(synthesise: Synthesise) -> None:
    (stage,) = synthesise(**CHOSEN).of_type("api", "AWS::ApiGatewayV2::Stage").values()
    assert stage["Properties"]["StageName"] == "$default"
    assert stage["Properties"]["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": 40,
        "ThrottlingBurstLimit": 20,
    }


def test_a_stage_may_set_the_limit_of_any_route_and_none_is_above_the_whole(synthesise: Synthesise) -> None:
    found = limits_of(synthesise(**CHOSEN))
    assert found == {
        "GET /streams": 10,
        "GET /feed/newest": 40,
        "GET /feed/position": 10,
        "POST /feed/ordered": 10,
        "GET /feed/{partition}": 40,
        "GET /tags": 10,
        "GET /dcb/tags": 10,
        "GET /dcb/count": 2,
        "POST /bodies": 3,
        "GET /feed": 2,
    }


def test_routes_are_there_before_they_are_limited(synthesise: Synthesise) -> None:
    deployment = synthesise()
    (stage,) = deployment.of_type("api", "AWS::ApiGatewayV2::Stage").values()
    assert set(deployment.of_type("api", ROUTE)) <= set(stage["DependsOn"])


def test_readers_who_wait_leave_most_of_an_accounts_invocations_to_others() -> None:
    """They have what the limit lets in at once, and what comes while these wait."""
    most = sum(LIMITS[each] for each in ("GET /feed/{partition}", "GET /feed/position", "POST /feed/ordered"))
    for stage in STAGES.values():
        assert most + most * stage.feed_wait_seconds <= 0.45 * 1_000


def test_access_logs_tell_the_route_but_not_the_stream(synthesise: Synthesise) -> None:
    deployment = synthesise("prod", **LOGGED)
    (stage,) = deployment.of_type("api", "AWS::ApiGatewayV2::Stage").values()
    line = json.loads(stage["Properties"]["AccessLogSettings"]["Format"])
    group = deployment.named("api", "AWS::Logs::LogGroup", "AccessLogInfrequent")
    assert {"$context.requestId", "$context.routeKey", "$context.status"} <= set(line.values())
    assert "$context.path" not in line.values()
    assert group["Properties"]["RetentionInDays"] == 14
    assert group["Properties"]["LogGroupClass"] == "INFREQUENT_ACCESS"


def test_an_access_log_whose_class_changes_is_another_group_since_a_group_keeps_its_class(
    synthesise: Synthesise,
) -> None:
    deployment = synthesise("prod", **LOGGED, access_log_class="standard")
    group = deployment.named("api", "AWS::Logs::LogGroup", "AccessLogStandard")["Properties"]
    assert (group["LogGroupClass"], group["LogGroupName"]) == (
        "STANDARD",
        "/aws/vendedlogs/epochal-prod-api-standard",
    )


def test_the_bill_counts_a_line_of_the_access_log_as_it_is() -> None:
    assert ACCESS_LINE.keys() == ACCESS_LOG.keys()


def test_access_logs_tell_the_subject_where_tokens_let_callers_in(synthesise: Synthesise) -> None:
    jwt = {"jwt_issuer": "https://issuer.example", "jwt_audience": ["shop"]}
    (stage,) = synthesise("prod", **jwt).of_type("api", "AWS::ApiGatewayV2::Stage").values()
    line = json.loads(stage["Properties"]["AccessLogSettings"]["Format"])
    assert line["caller"] == "$context.authorizer.claims.sub"


def test_without_access_logs_no_request_is_logged(synthesise: Synthesise) -> None:
    (stage,) = synthesise(**CHOSEN).of_type("api", "AWS::ApiGatewayV2::Stage").values()
    assert "AccessLogSettings" not in stage["Properties"]


@pytest.mark.parametrize("name", ["append", "replay", "feed"])
def test_a_request_is_answered_before_the_gateway_gives_up(synthesise: Synthesise, name: str) -> None:
    assert REQUEST_SECONDS < function_of(synthesise(), name)["Timeout"] < 30


@pytest.mark.parametrize("name", ["append", "replay", "feed", "indexer"])
def test_a_function_has_its_own_log_for_the_stages_days(synthesise: Synthesise, name: str) -> None:
    deployment = synthesise("prod", **LOGGED)
    properties = function_of(deployment, name)
    kind = "feed" if name == "indexer" else "api"
    group = deployment.of_type(kind, "AWS::Logs::LogGroup")[properties["LoggingConfig"]["LogGroup"]["Ref"]]
    assert group["Properties"]["LogGroupName"] == f"/aws/lambda/epochal-prod-{name}"
    assert group["Properties"]["RetentionInDays"] == 14
    assert properties["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == "WARNING"


@pytest.mark.parametrize("name", ["append", "indexer"])
def test_lambda_writes_lines_of_its_own_only_of_trouble_and_drops_no_metrics(
    synthesise: Synthesise, name: str
) -> None:
    def logging(deployment: Deployment) -> list[str]:
        told = function_of(deployment, name)["LoggingConfig"]
        return [told["LogFormat"], told["SystemLogLevel"], told["ApplicationLogLevel"]]

    assert logging(synthesise("prod", **LOGGED)) == ["JSON", "WARN", "INFO"]
    assert logging(synthesise(**CHOSEN)) == ["JSON", "INFO", "DEBUG"]


def test_concurrency_is_reserved_for_the_functions_that_the_stage_names(synthesise: Synthesise) -> None:
    deployment = synthesise(**CHOSEN)
    reserved = {
        name: function_of(deployment, name).get("ReservedConcurrentExecutions")
        for name in ("append", "replay", "feed", "indexer")
    }
    assert reserved == {"append": None, "replay": None, "feed": 50, "indexer": 5}


def test_a_function_is_told_only_what_it_needs(synthesise: Synthesise) -> None:
    deployment = synthesise(service="shop", aggregate_types=["order"])
    told = {
        name: {
            key
            for key in function_of(deployment, name)["Environment"]["Variables"]
            if key.startswith("EPOCHAL_")
        }
        for name in ("append", "replay", "feed", "indexer")
    }
    assert told == {
        "append": {*EVENTS, *STATES, *WRITES, "EPOCHAL_BUCKET", "EPOCHAL_UNCHECKED_EVENTS"},
        "replay": {*EVENTS, *STATES, "EPOCHAL_BUCKET", "EPOCHAL_CONSISTENT_READS"},
        "feed": {*EVENTS, *FEED, "EPOCHAL_BUCKET", "EPOCHAL_FEED_WAIT_SECONDS"},
        "indexer": {*EVENTS, *FEED, "EPOCHAL_TOPIC"},
    }


@pytest.mark.parametrize("name", ["append", "replay", "feed", "indexer"])
def test_a_function_reads_back_the_types_shards_and_tenant_that_the_stage_says(
    synthesise: Synthesise, name: str
) -> None:
    settings = read_back(synthesise(**CHOSEN), name)
    assert settings.value("aggregate_types") == ("order", "user-account")
    assert settings.value("journal_shards") == 8
    assert (settings.value("journal_keys"), settings.value("journal_serializer")) == ("rust", "java")
    assert settings.value("service") == "shop"


@pytest.mark.parametrize("name", ["append", "replay"])
def test_a_function_reads_back_how_tagged_events_are_written_and_where_states_lie(
    synthesise: Synthesise, name: str
) -> None:
    settings = read_back(synthesise(**CHOSEN), name)
    assert settings.value("type_heads")
    assert (settings.tagged_types, settings.tagged_everything) == (("NameClaimed",), True)
    assert settings.value("write_shards") == 4
    assert settings.value("states_prefix") == "projections"


def test_the_archive_and_retries_are_told_to_those_who_read_and_retry(synthesise: Synthesise) -> None:
    deployment = synthesise(**CHOSEN)
    for name in ("append", "replay", "feed", "indexer"):
        variables = function_of(deployment, name)["Environment"]["Variables"]
        assert ("EPOCHAL_ARCHIVE_TABLE" in variables) == (name != "indexer")
        assert read_back(deployment, name).retries == (None if name == "indexer" else 0)


def test_functions_read_back_what_is_kept_of_snapshots_and_states_and_how_tagged_events_are_read(
    synthesise: Synthesise,
) -> None:
    stage = synthesise(**CHOSEN)
    settings = read_back(stage, "append")
    assert (
        settings.value("snapshot_copies"),
        settings.value("snapshot_ttl_days"),
        settings.value("state_inline_bytes"),
    ) == (3, 30, 0)
    assert not read_back(stage, "replay").value("consistent_reads")
    default = Settings()
    settings = read_back(synthesise(), "append")
    assert (settings.value("snapshot_copies"), settings.value("state_inline_bytes")) == (
        0,
        default.value("state_inline_bytes"),
    )
    assert read_back(synthesise(), "replay").value("consistent_reads")


def test_functions_read_back_how_large_uploads_are_and_how_long_readers_wait(synthesise: Synthesise) -> None:
    stage = synthesise(**CHOSEN)
    assert read_back(stage, "append").max_upload_bytes == 1_000
    assert read_back(stage, "feed").feed_wait_seconds == 0
    assert read_back(synthesise(), "append").max_upload_bytes == Settings().max_upload_bytes
    assert read_back(synthesise(), "feed").feed_wait_seconds == Settings().feed_wait_seconds


def test_the_append_function_alone_reads_back_that_events_are_checked_and_has_what_checks_them(
    synthesise: Synthesise,
) -> None:
    stage = synthesise(**CHOSEN)
    settings = read_back(stage, "append")
    assert (settings.event_schemas, settings.unchecked_events) == (SCHEMAS, "refuse")
    layers = {name: len(function_of(stage, name)["Layers"]) for name in ("append", "replay", "feed")}
    assert layers["append"] == layers["replay"] + 1 == layers["feed"] + 1
    assert read_back(stage, "replay").event_schemas == ""
    assert read_back(synthesise(), "append").event_schemas == ""
    assert len(function_of(synthesise(), "append")["Layers"]) == layers["replay"]


def test_the_auditor_alone_reads_back_what_streams_keep_and_where_their_archive_is(
    synthesise: Synthesise,
) -> None:
    stage = synthesise(**CHOSEN)
    assert read_back(stage, "auditor").keep == ("Visit:100", "Log:30d")
    assert {read_back(stage, name).keep for name in ("append", "replay", "feed", "indexer")} == {()}
    assert "EPOCHAL_STREAMS_ARCHIVE_TABLE" in function_of(stage, "auditor")["Environment"]["Variables"]


@pytest.mark.parametrize("name", ["feed", "indexer"])
def test_a_function_reads_back_the_partitions_of_each_source(synthesise: Synthesise, name: str) -> None:
    settings = read_back(synthesise(**CHOSEN), name)
    counts = {"tips_partitions": 7, "journal_partitions": 5, "dcb_partitions": 3, "pages_partitions": 2}
    assert {each: settings.partitions(each) for each in counts} == counts


@pytest.mark.parametrize("name", ["append", "replay"])
def test_what_the_stage_leaves_out_is_read_back_as_the_librarys_default(
    synthesise: Synthesise, name: str
) -> None:
    settings, default = read_back(synthesise(), name), Settings()
    assert settings.value("aggregate_types") == ()
    assert (settings.value("type_heads"), settings.value("write_shards")) == (
        default.value("type_heads"),
        default.value("write_shards"),
    )
    assert (settings.value("service"), settings.value("states_prefix")) == (
        default.value("service"),
        default.value("states_prefix"),
    )


@pytest.mark.parametrize("name", sorted({route.function for route in operations()} | {"indexer"}))
def test_every_function_that_is_deployed_has_a_handler(name: str) -> None:
    text = (ROOT / "lambdas" / name / "handler.py").read_text()
    assert "def handler(" in text or "handler = " in text


def limits_of(deployment: Deployment) -> dict[str, int]:
    """Requests a second, which are also the burst, of the routes that have limits of their own."""
    (stage,) = deployment.of_type("api", "AWS::ApiGatewayV2::Stage").values()
    found = stage["Properties"]["RouteSettings"]
    assert all(each["ThrottlingRateLimit"] == each["ThrottlingBurstLimit"] for each in found.values())
    return {route: each["ThrottlingRateLimit"] for route, each in found.items()}


def function_of(deployment: Deployment, name: str) -> dict[str, Any]:
    of_feed = {"indexer": "IndexerFunction", "auditor": "AuditAuditor"}
    where = (
        ("feed", FUNCTION, of_feed[name])
        if name in of_feed
        else ("api", FUNCTION, f"{name.capitalize()}Function")
    )
    properties: dict[str, Any] = deployment.named(*where)["Properties"]
    return properties


def read_back(deployment: Deployment, name: str) -> Settings:
    """A function's settings, apart from names that are known only once tables and buckets are there."""
    variables = function_of(deployment, name)["Environment"]["Variables"]
    return Settings.from_environment({key: text for key, text in variables.items() if isinstance(text, str)})


def test_a_reader_that_waits_holds_half_of_the_memory_of_other_requests_for_what_the_page_about_cost_says(
    synthesise: Synthesise,
) -> None:
    found = synthesise().of_type("api", FUNCTION).values()
    memory = {
        each["Properties"]["FunctionName"].rsplit("-")[-1]: each["Properties"]["MemorySize"] for each in found
    }
    assert memory == {"append": 1_024, "replay": 1_024, "feed": 512}
    month = 730 * 3_600
    request = PRICES["gateway"][0] + PRICES["invocation"][0]
    held = month * memory["feed"] / 1_024 * PRICES["gigabyte-second"][0] + month / WAIT_SECONDS * request
    heeding = month / LONGEST_POLL * (request + 0.02 * PRICES["gigabyte-second"][0])
    page = " ".join((ROOT / "docs" / "reference" / "cost.md").read_text().split())
    assert (
        f"holds 512 MB, for {held:.0f} dollars a month; one that heeds `Retry-After` instead takes {heeding:.0f}"
        in page
    )

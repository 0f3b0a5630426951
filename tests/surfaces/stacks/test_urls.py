"""A stage without a gateway: each function has an address of its own, for those whom IAM lets in."""

from __future__ import annotations

import pytest

from epochal.cdk.rules import BadSetting
from stacks.stages import stage_from
from tests.surfaces.stacks.templates import Deployment, Synthesise

FUNCTIONS = ("append", "replay", "feed")


@pytest.fixture(scope="module")
def addressed(synthesise: Synthesise) -> Deployment:
    return synthesise("prod", api="urls")


def test_each_function_has_an_address_that_wants_a_signature_and_an_output_tells_it(
    addressed: Deployment,
) -> None:
    urls = addressed.of_type("api", "AWS::Lambda::Url")
    assert {each["Properties"]["AuthType"] for each in urls.values()} == {"AWS_IAM"}
    outputs = addressed.template("api")["Outputs"]
    told = {name: value["Value"]["Fn::GetAtt"] for name, value in outputs.items() if name.endswith("Url")}
    assert told.keys() == {"AppendUrl", "ReplayUrl", "FeedUrl"}
    for name in FUNCTIONS:
        url, attribute = told[f"{name.capitalize()}Url"]
        assert attribute == "FunctionUrl"
        (function, _) = urls[url]["Properties"]["TargetFunctionArn"]["Fn::GetAtt"]
        assert function.startswith(name.capitalize())


def test_there_is_no_gateway_and_nobody_is_let_in_by_the_functions_themselves(addressed: Deployment) -> None:
    assert not addressed.of_type("api", "AWS::ApiGatewayV2::Api")
    assert not addressed.of_type("api", "AWS::Lambda::Permission")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("access_logs", True), ("access_log_class", "standard"),
        ("burst", 5), ("requests_per_second", 5), ("route_limits", {"GET /feed": 2}),
    ],
)  # fmt: skip
def test_what_only_the_gateway_does_is_refused_without_it(setting: str, value: object) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_from("dev", {"dev": {"api": "urls", setting: value}})
    assert refused.value.name == f"stages.dev.{setting}"
    stage_from("dev", {"dev": {"api": "urls", "access_logs": False}})


def test_a_context_value_says_it_for_one_deployment_and_is_refused_beside_an_issuer() -> None:
    assert stage_from("prod", None, {"api": "urls"}).api == "urls"
    issued = {"prod": {"jwt_issuer": "https://issuer.example", "jwt_audience": ["epochal"]}}
    with pytest.raises(BadSetting, match="jwt_issuer has no effect with api urls"):
        stage_from("prod", issued, {"api": "urls"})
    with pytest.raises(BadSetting, match="api must be one of gateway, urls"):
        stage_from("prod", None, {"api": "url"})

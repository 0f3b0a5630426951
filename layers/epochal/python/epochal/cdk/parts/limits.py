"""Sizes that AWS limits and CloudFormation meets only halfway through a deployment, checked at synthesis.

Sizes depend on names that a template leaves open: account, region, partition, and what resources are called. Each check
measures the longest text that the template may become where it is deployed. A stack whose region is known is measured
for that region. References to named resources of the same stack are measured by those names.

    bucket name             63 characters                  S3
    environment              4,096 bytes as JSON           Lambda, which measures names, values and quotation marks
    layers                       5 of a function           Lambda
    filters                      5 of a mapping            Lambda; a quota that AWS may raise to 10
    resource policy         20,480 bytes of a function     Lambda; each route of the gateway is a statement
    inline policies         10,240 characters of a role    IAM
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from aws_cdk import CfnElement, Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct

from epochal.cdk.rules import BadSetting
from epochal.cdk.stages import Stage

BUCKET_NAME: Final = 63
ENVIRONMENT_BYTES: Final = 4_096
LAYERS: Final = 5
FILTERS: Final = 5
RESOURCE_POLICY_BYTES: Final = 20_480
ROLE_POLICY_CHARACTERS: Final = 10_240

_ACCOUNT: Final = 12
_LONGEST_REGION: Final = "ap-southeast-1"
_LONGEST_PARTITION: Final = "aws-us-gov"
_ID: Final = "x" * 36
"""Stands for an identifier that AWS makes, such as that of an event source mapping."""

_QUEUE_ADDRESS: Final = f"https://sqs.{_LONGEST_REGION}.amazonaws.com.cn/{_ID[:_ACCOUNT]}/"
"""Stands for what comes before a queue's name in its URL, which a reference to the queue becomes."""

_STATEMENT_ID: Final = "x" * 100
"""The longest id of a statement in a function's resource policy; CloudFormation makes it of the stack's name."""

_NAMES: Final = ("table_name", "queue_name", "bucket_name", "function_name", "topic_name", "log_group_name")
"""Properties that name resources to which functions refer."""


def check_bucket_name(scope: Construct, stage: Stage, kind: str, *, setting: str, remedy: str) -> None:
    """Raise `BadSetting` if the bucket of a kind would have a longer name than S3 allows.

    Args:
        kind: last part of the name before account and region, which the setting is the value of.
        setting: name of the setting.
        remedy: sentence that says what to change.
    """
    region = _region(scope)
    length = len(stage.named(kind)) + len("-") + _ACCOUNT + len("-") + len(region)
    if length > BUCKET_NAME:
        most = len(kind) - (length - BUCKET_NAME)
        rule = (
            f"must have at most {most} characters here, not the {len(kind)} of {kind!r}: the bucket "
            f"{stage.named(kind)}-<account>-{region} would have {length} characters, and S3 allows {BUCKET_NAME}. "
            f"{remedy}"
        )
        raise BadSetting(setting, rule)


def check_environment(
    scope: Construct, where: str, environment: Mapping[str, str], remedies: Mapping[str, tuple[str, str]]
) -> None:
    """Raise `BadSetting` if a function's environment has more bytes than Lambda allows.

    Args:
        where: name of the setting that the error names if the largest variable has no setting of its own.
        remedies: by variable, the setting that makes its value, and a sentence that says what to change.
    """
    if (
        _bytes(dict(environment)) > ENVIRONMENT_BYTES // 2
    ):  # references are measured only where they may matter
        resolved = _longest(scope, dict(environment))
        size = _bytes(resolved)
        if size > ENVIRONMENT_BYTES:
            largest = max(resolved, key=lambda name: len(str(resolved[name])))
            setting, remedy = remedies.get(
                largest, (where, "Shorten it, or let the function read it from elsewhere.")
            )
            rule = (
                f"makes an environment of {size:,} bytes, and Lambda allows {ENVIRONMENT_BYTES:,}: the variable "
                f"{largest} alone has {_bytes(resolved[largest]):,}. {remedy}"
            )
            raise BadSetting(setting, rule)


def check_layers(where: str, own: int, more: int) -> None:
    """Raise `BadSetting` if a function has more layers than Lambda allows.

    Args:
        where: name of the setting that adds layers.
        own: number of Epochal's layers.
        more: number of other layers.
    """
    if own + more > LAYERS:
        rule = (
            f"makes {own + more} layers, and Lambda allows {LAYERS} of a function: {own} are Epochal's, {more} come "
            "with packages and more_layers. Put packages into one layer or into the function's own code, or leave "
            "boto3 of the store at runtime"
        )
        raise BadSetting(where, rule)


def check_filters(setting: str, filters: Sequence[str], remedy: str) -> None:
    """Raise `BadSetting` if an event source mapping has more filters than Lambda allows.

    Args:
        setting: setting that the filters come from.
        remedy: sentence that says what to change.
    """
    if len(filters) > FILTERS:
        rule = (
            f"makes {len(filters)} filters of one event source mapping, and Lambda allows {FILTERS}. {remedy}"
        )
        raise BadSetting(setting, rule)


def check_routes(scope: Construct, stage: Stage, function: str, paths: Sequence[str]) -> None:
    """Raise `BadSetting` if the routes to a function make its resource policy larger than Lambda allows.

    Args:
        function: kind of the function.
        paths: paths of the routes to it, each of which is a statement of the policy.
    """
    partition, region, account = _partition(scope), _region(scope), "1" * _ACCOUNT
    size = sum(
        _bytes(
            {
                "Sid": _STATEMENT_ID,
                "Effect": "Allow",
                "Principal": {"Service": "apigateway.amazonaws.com"},
                "Action": "lambda:InvokeFunction",
                "Resource": f"arn:{partition}:lambda:{region}:{account}:function:{stage.named(function)}",
                "Condition": {
                    "ArnLike": {
                        "AWS:SourceArn": f"arn:{partition}:execute-api:{region}:{account}:{_ID[:10]}/*/*{path}"
                    }
                },
            }
        )
        for path in paths
    )
    if size > RESOURCE_POLICY_BYTES:
        rule = (
            f"give the function {function} {len(paths)} routes, whose resource policy may have {size:,} bytes, and "
            f"Lambda allows {RESOURCE_POLICY_BYTES:,}. Leave out a layout, or set api to urls, which has no routes"
        )
        raise BadSetting("layouts", rule)


def check_role_policy(scope: Construct, where: str, policy: iam.PolicyDocument) -> None:
    """Raise `BadSetting` if the inline policy of a role has more characters than IAM allows.

    Args:
        where: setting that the permissions come from.
    """
    resolved = Stack.of(scope).resolve(policy)
    if _bytes(resolved) <= ROLE_POLICY_CHARACTERS // 2:
        return
    size = _bytes(_longest(scope, resolved))
    if size > ROLE_POLICY_CHARACTERS:
        rule = (
            f"makes an inline policy of {size:,} characters, and IAM allows {ROLE_POLICY_CHARACTERS:,} of a role. "
            "Name resources by a pattern with *, or divide the work among several functions"
        )
        raise BadSetting(where, rule)


def _bytes(value: Any) -> int:
    """Return the bytes of a value as JSON without spaces."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def _region(scope: Construct) -> str:
    """Return the region of a stack, or one of the longest names where the stack leaves it open."""
    region = Stack.of(scope).region
    return _LONGEST_REGION if Token.is_unresolved(region) else region


def _partition(scope: Construct) -> str:
    """Return the AWS partition of a stack's region; the longest partition if the region is unknown."""
    region = Stack.of(scope).region
    if Token.is_unresolved(region):
        return _LONGEST_PARTITION
    return {"cn": "aws-cn", "us-gov": _LONGEST_PARTITION}.get(
        region.rpartition("-")[0].rpartition("-")[0], "aws"
    )


def _longest(scope: Construct, value: Any) -> Any:
    """Return a value with every reference replaced by the longest text that it may become."""
    stack = Stack.of(scope)
    resolved = stack.resolve(value)
    places = {
        "AWS::AccountId": "1" * _ACCOUNT,
        "AWS::Partition": _partition(scope),
        "AWS::Region": _region(scope),
        "AWS::URLSuffix": "amazonaws.com.cn",
    }
    names = {}
    if _refers_to_resources(resolved):
        names = {id_: _filled(name, places, {}) for id_, name in _names(stack)}
    return _filled(resolved, places, names)


def _filled(value: Any, places: Mapping[str, str], names: Mapping[str, str]) -> Any:
    """Return a resolved value with texts in place of its references.

    Args:
        places: values of pseudo parameters.
        names: names of resources by logical id; an ARN is made of the name as that of a table.
    """
    match value:
        case {"Ref": str(name)}:
            return places.get(name) or names.get(name, _ID)
        case {"Fn::GetAtt": [str(id_), str(attribute)]}:
            name = names.get(id_, _ID)
            begin = ":".join(
                ("arn", places["AWS::Partition"], "dynamodb", places["AWS::Region"], "1" * _ACCOUNT)
            )
            return f"{begin}:table/{name}" if attribute.endswith("Arn") else name
        case {"Fn::Join": [str(between), list(parts)]}:
            return between.join(str(_filled(part, places, names)) for part in parts)
        case dict():
            return {key: _filled(part, places, names) for key, part in value.items()}
        case list():
            return [_filled(part, places, names) for part in value]
        case _:
            return value


def _refers_to_resources(value: Any) -> bool:
    """Whether a resolved value refers to resources of its stack."""
    text = json.dumps(value)
    return '"Fn::GetAtt"' in text or text.count('"Ref"') > text.count('"Ref": "AWS::')


def _names(stack: Stack) -> Iterator[tuple[str, Any]]:
    """Yield the logical id of each named resource of a stack, and what a reference to it resolves to."""
    for element in stack.node.find_all():
        if isinstance(element, CfnElement):
            for kind in _NAMES:
                if name := getattr(element, kind, None):
                    address = _QUEUE_ADDRESS if kind == "queue_name" else ""
                    yield stack.resolve(element.logical_id), stack.resolve(address + name)

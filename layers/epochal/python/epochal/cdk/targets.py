"""Where the stacks go: AWS, or the AWS that is embedded for development and tests.

`-c target=embedded` is the one value in which a local deployment differs. What follows from it:

    embedded    it speaks plain HTTP on this machine's own address, so buckets and queues cannot insist on TLS
                it knows sending a batch of messages as an action of its own, which AWS does not, and a question about
                one mapping of a stream as that about all of them
                functions run on this machine's interpreter, so the second layer holds this machine's wheels
                functions have the boto3 that it brings, which is the one that is tested
                keys of logs and certificates of domains are not there, and it is every account and region at once
                no data is kept, whatever the stage says, and no table has a replica: it is one region
                tables send nothing to Kinesis: what it sends has not the form of what DynamoDB sends
                the deploying user's own credentials suffice: no roles from a bootstrapped account
                functions log the words of handlers' errors, and names of streams: nobody but the developer reads it
                no WatchStack: metric-math alarms are not emulated
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import Final

from aws_cdk import CliCredentialsStackSynthesizer, DefaultStackSynthesizer, IStackSynthesizer
from aws_cdk import aws_lambda as lambda_

from epochal.cdk.parts.layers import Platform
from epochal.cdk.stages import BadSetting, Stage
from epochal.settings import LAMBDA_PYTHON

TARGET: Final = "EPOCHAL_TARGET"
"""The variable of the environment that says where an app is deployed to: the app need not know."""

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""Those that the library and Lambda have in common."""

AMAZON_LINUX_2: Final = ("3.11",)
"""Those that Lambda runs there. It has glibc 2.26, which only the older platform tag fits; its successor has 2.34."""


class Target(Enum):
    """A kind of AWS to deploy to."""

    AWS = "aws"
    EMBEDDED = "embedded"


def target_from(name: object) -> Target:
    """The target that context `target` names."""
    try:
        return Target(name)
    except ValueError:
        raise BadSetting(
            "target", f"must be one of {', '.join(t.value for t in Target)}, not {name!r}"
        ) from None


def architecture(target: Target, wanted: lambda_.Architecture | None = None) -> lambda_.Architecture:
    """Graviton costs a fifth less for the same work; what is embedded runs on the machine at hand."""
    if target is Target.EMBEDDED and platform.machine() in ("x86_64", "AMD64"):
        return lambda_.Architecture.X86_64
    return wanted if wanted and target is Target.AWS else lambda_.Architecture.ARM_64


def known_python(where: str, python: str) -> str:
    """The version `major.minor`; raises `BadSetting` of `where` it was said, if functions cannot run on it."""
    if python not in PYTHONS:
        raise BadSetting(where, f"must be one of {', '.join(PYTHONS)}, not {python!r}")
    return python


def lambda_platform(python: str, processor: lambda_.Architecture) -> Platform:
    """What wheels have to fit in AWS. Most wheels carry one of these tags."""
    machine = "aarch64" if processor.name == lambda_.Architecture.ARM_64.name else "x86_64"
    newer = () if python in AMAZON_LINUX_2 else (f"manylinux_2_28_{machine}",)
    return Platform(python=python, tags=(*newer, f"manylinux2014_{machine}"))


def wheels(
    target: Target, python: str = LAMBDA_PYTHON, wanted: lambda_.Architecture | None = None
) -> Platform:
    """Which wheels the second layer needs."""
    if target is Target.AWS:
        return lambda_platform(python, architecture(target, wanted))
    return Platform(python=f"{sys.version_info.major}.{sys.version_info.minor}")


def target_told(environment: Mapping[str, str]) -> Target:
    """Where the environment says that an app goes: to AWS, if it says nothing."""
    return target_from(environment.get(TARGET, Target.AWS.value))


def synthesizer(target: Target) -> IStackSynthesizer:
    """How assets and templates travel: through bootstrap roles, or with the caller's own credentials."""
    return DefaultStackSynthesizer() if target is Target.AWS else CliCredentialsStackSynthesizer()


def fitted(stage: Stage, target: Target) -> Stage:
    """The stage as this target can honour it."""
    if target is Target.AWS:
        return stage
    return replace(
        stage,
        retain=False,
        deletion_protection=False,
        account="",
        region="",
        boto3="runtime",
        log_kms_key="",
        domain_name="",
        domain_certificate="",
        replica_region="",
        replica_kms_key="",
        feed_kinesis_shards=0,
        tls_only=False,
        batches_named=True,
        log_level="DEBUG",
    )

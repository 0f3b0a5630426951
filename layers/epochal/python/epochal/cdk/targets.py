"""The target of a deployment: AWS, or the embedded AWS on this machine, with the functions' Python and processor."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from enum import Enum
from typing import Final

from aws_cdk import CliCredentialsStackSynthesizer, DefaultStackSynthesizer, IStackSynthesizer
from aws_cdk import aws_lambda as lambda_

from epochal.cdk.parts.layers import Platform
from epochal.cdk.rules import BadSetting
from epochal.cdk.stages import Stage
from epochal.lazy_dataclasses import replace
from epochal.settings import LAMBDA_PYTHON

TARGET: Final = "EPOCHAL_TARGET"
"""Environment variable with the target that an app is deployed to, so that the app need not know."""

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
"""Python versions that both the library and Lambda support."""

AMAZON_LINUX_2: Final = ("3.11",)
"""Python versions that Lambda runs on Amazon Linux 2. Its glibc 2.26 fits only the older platform tag; its successor
has 2.34."""


class Target(Enum):
    """A kind of AWS to deploy to."""

    AWS = "aws"
    EMBEDDED = "embedded"


def target_from(name: object) -> Target:
    """Parse the name of a target, `aws` or `embedded`; raise `BadSetting` for any other.

    Raises:
        BadSetting: there is no such target.
    """
    try:
        return Target(name)
    except ValueError:
        raise BadSetting(
            "target", f"must be one of {', '.join(t.value for t in Target)}, not {name!r}"
        ) from None


def architecture(target: Target, processor: lambda_.Architecture | None = None) -> lambda_.Architecture:
    """Return the functions' processor: on AWS the wanted one, else ARM; if embedded, this machine's.

    Graviton costs a fifth less for the same work. Functions of the embedded AWS run on this machine's processor.
    """
    if target is Target.EMBEDDED and platform.machine() in ("x86_64", "AMD64"):
        return lambda_.Architecture.X86_64
    return processor if processor and target is Target.AWS else lambda_.Architecture.ARM_64


def check_python(where: str, python: str) -> str:
    """Return the given Python version; raise `BadSetting` if functions cannot run on it.

    Args:
        where: name of the setting, for the error.

    Raises:
        BadSetting: functions cannot run on that version.
    """
    if python not in PYTHONS:
        raise BadSetting(where, f"must be one of {', '.join(PYTHONS)}, not {python!r}")
    return python


def lambda_platform(python: str, processor: lambda_.Architecture) -> Platform:
    """Return the platform that wheels must fit to run in AWS Lambda.

    Most wheels carry one of its tags.
    """
    machine = "aarch64" if processor.name == lambda_.Architecture.ARM_64.name else "x86_64"
    newer = () if python in AMAZON_LINUX_2 else (f"manylinux_2_28_{machine}",)
    return Platform(python=python, tags=(*newer, f"manylinux2014_{machine}"))


def wheels(
    target: Target, python: str = LAMBDA_PYTHON, processor: lambda_.Architecture | None = None
) -> Platform:
    """Return the platform that the second layer's wheels must fit."""
    if target is Target.AWS:
        return lambda_platform(python, architecture(target, processor))
    return Platform(python=f"{sys.version_info.major}.{sys.version_info.minor}")


def target_from_environment(environment: Mapping[str, str]) -> Target:
    """Return the target that the environment names; AWS where it names none."""
    return target_from(environment.get(TARGET, Target.AWS.value))


def synthesizer(target: Target) -> IStackSynthesizer:
    """Return the stack synthesizer: bootstrap roles for AWS, else the caller's own credentials."""
    return DefaultStackSynthesizer() if target is Target.AWS else CliCredentialsStackSynthesizer()


def fit_stage(stage: Stage, target: Target) -> Stage:
    """Return the stage with its settings changed to what the embedded AWS supports; for AWS, unchanged."""
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
        queue_kms_key="",
        environment_kms_key="",
        domain_name="",
        domain_certificate="",
        replica_region="",
        replica_kms_key="",
        feed_kinesis_shards=0,
        tls_only=False,
        batches_named=True,
        log_level="DEBUG",
    )

"""The targets of deployments: AWS, or the AWS that is embedded for development and tests.

`-c target=embedded` is the only context value in which a local deployment differs. Its consequences:

    embedded    it serves plain HTTP on this machine's own address, so buckets and queues cannot require TLS
                sending a batch of messages is an IAM action of its own, unlike in AWS, and reading one event source
                mapping needs the action for listing all
                functions run on this machine's interpreter, so the second layer has this machine's wheels
                functions have the boto3 that the embedded AWS brings, which is the tested one
                there are no keys of logs or certificates of domains, and it is every account and region at once
                no data is retained, whatever the stage says, and no table has a replica: it is one region
                tables send nothing to Kinesis: the embedded AWS sends records of another form than DynamoDB
                the deploying user's own credentials suffice: there are no roles of a bootstrapped account
                functions log the texts of handlers' errors, and names of streams: only the developer reads the logs
                no WatchStack: metric-math alarms are not emulated
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Final

from aws_cdk import CliCredentialsStackSynthesizer, DefaultStackSynthesizer, IStackSynthesizer
from aws_cdk import aws_lambda as lambda_

from epochal.cdk.parts.functions import Code
from epochal.cdk.parts.layers import Platform, brought, bundled, checking, prepared, vendored
from epochal.cdk.stages import BadSetting, Stage
from epochal.cdk.user_cache import user_cache
from epochal.lazy_dataclasses import dataclass, replace
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
    """Parse the name of a target, `aws` or `embedded`.

    Raises:
        BadSetting: there is no such target.
    """
    try:
        return Target(name)
    except ValueError:
        raise BadSetting(
            "target", f"must be one of {', '.join(t.value for t in Target)}, not {name!r}"
        ) from None


def architecture(target: Target, wanted: lambda_.Architecture | None = None) -> lambda_.Architecture:
    """Return the processor architecture of functions: the wanted one, else ARM.

    Graviton costs a fifth less for the same work. Functions of the embedded AWS run on this machine's processor.
    """
    if target is Target.EMBEDDED and platform.machine() in ("x86_64", "AMD64"):
        return lambda_.Architecture.X86_64
    return wanted if wanted and target is Target.AWS else lambda_.Architecture.ARM_64


def known_python(where: str, python: str) -> str:
    """Return a Python version `major.minor` that functions can run on.

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
    target: Target, python: str = LAMBDA_PYTHON, wanted: lambda_.Architecture | None = None
) -> Platform:
    """Return the platform that the second layer's wheels must fit."""
    if target is Target.AWS:
        return lambda_platform(python, architecture(target, wanted))
    return Platform(python=f"{sys.version_info.major}.{sys.version_info.minor}")


def target_told(environment: Mapping[str, str]) -> Target:
    """Return the target that the environment names; AWS where it names none."""
    return target_from(environment.get(TARGET, Target.AWS.value))


def synthesizer(target: Target) -> IStackSynthesizer:
    """Return the stack synthesizer: bootstrap roles for AWS, else the caller's own credentials."""
    return DefaultStackSynthesizer() if target is Target.AWS else CliCredentialsStackSynthesizer()


def fitted(stage: Stage, target: Target) -> Stage:
    """Return a stage with the settings that a target supports; for AWS, unchanged."""
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


# Sources of the code that a deployment runs: the library, a folder for each function, and third-party packages.
#
#     shipped          the files installed with this package, wherever that is
#     in_repository    the files of a checkout
#
# pip fetches third-party packages for the functions' Python and processor into a cache: no container is needed, and a
# registry is asked once for each set of pins.

PINS: Final = ("requirements", "boto3")
"""Names of pin files: packages that functions always need, and boto3 for stages that want the tested version."""

_ROOM: Final = Path(__file__).resolve().parent
_PACKAGE: Final = _ROOM.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the code of functions comes from.

    Attributes:
        library: function from a Python version to the folder of layer 1.
        vendor: function from a platform to the folder of layer 2.
        sdk: function from a platform to the folder of a layer with the tested boto3.
        packages: function from a requirements file and a platform to the folder of a layer with its packages.
        layouts: function from names of layouts and a platform to the folder of a layer with the packages that bring
            them.
        schemas: function from a file of schemas and a platform to the folder of a layer with the module that checks
            events.
        lambdas: folder with one folder for each function.
        root: folder that entries of reactions are relative to.
    """

    library: Callable[[str], Path]
    vendor: Callable[[Platform], Path]
    sdk: Callable[[Platform], Path]
    packages: Callable[[Path, Platform], Path]
    layouts: Callable[[Sequence[str], Platform], Path]
    schemas: Callable[[Path, Platform], Path]
    lambdas: Path
    root: Path

    @classmethod
    def shipped(cls) -> Sources:
        """Return the sources installed with this package; entries are relative to the working directory."""
        cache = user_cache()
        # Each installation of the library has its own cache.
        own = cache / hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:12]
        library = partial(prepared, _PACKAGE, cache=own, below="python/epochal")
        return cls._fetched(library, cache, _shipped, Path.cwd())

    @classmethod
    def in_repository(cls, root: Path) -> Sources:
        """Return the sources of the checkout at `root`."""
        root = root.resolve()
        cache = root / ".cache" / "layers"
        library = partial(prepared, root / "layers" / "epochal", cache=cache)
        return cls._fetched(library, cache, root.joinpath, root)

    @classmethod
    def _fetched(
        cls, library: Callable[[str], Path], cache: Path, place: Callable[[str], Path], root: Path
    ) -> Sources:
        """Return sources whose third-party packages pip fetches into a cache.

        Args:
            library: function from a Python version to the folder of layer 1.
            cache: folder in which fetched packages are kept.
            place: function from a relative path to a folder or file of these sources.
            root: folder that entries of reactions are relative to.
        """
        pins, sdk = (place(f"layers/vendor/{name}.txt") for name in PINS)
        return cls(
            library=library,
            vendor=lambda platform: vendored(pins, platform, cache),
            sdk=lambda platform: vendored(sdk, platform, cache),
            packages=lambda requirements, platform: bundled(requirements, platform, cache),
            layouts=lambda names, platform: brought(names, platform, cache),
            schemas=lambda document, platform: checking(document, platform, cache),
            lambdas=place("lambdas"),
            root=root,
        )


def code_of(
    sources: Sources,
    target: Target = Target.AWS,
    *,
    python: str = LAMBDA_PYTHON,
    processor: lambda_.Architecture | None = None,
    sdk: bool = False,
    layouts: Sequence[str] = (),
    schemas: str = "",
) -> Code:
    """Return the functions' code for a target, fetching the layers that are not cached yet.

    Args:
        processor: wanted architecture; None for ARM.
        sdk: whether to add a layer with the tested boto3.
        layouts: names of layouts whose packages go into a layer; empty for no such layer.
        schemas: file of event schemas for a layer that checks events; empty for no such layer.

    Raises:
        InstallerFailed: pip could not fetch a layer's packages.
        BadSetting: the file has no schemas, or such as cannot be checked.
    """
    platform = wheels(target, python, processor)
    return Code(
        library=sources.library(platform.python),
        vendor=sources.vendor(platform),
        sdk=sources.sdk(platform) if sdk else None,
        layouts=sources.layouts(layouts, platform) if layouts else None,
        schemas=sources.schemas(sources.root / schemas, platform) if schemas else None,
        packages=lambda requirements: sources.packages(requirements, platform),
        lambdas=sources.lambdas,
        architecture=architecture(target, processor),
        python=python,
    )


def _shipped(name: str) -> Path:
    """Return a folder or file of the wheel, or of the checkout's root where there is no wheel."""
    packed = _ROOM / "shipped" / name
    return packed if packed.exists() else _ROOM.parents[4] / name

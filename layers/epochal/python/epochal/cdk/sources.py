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
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from aws_cdk import aws_lambda as lambda_

from epochal.cdk.parts.bytecode import prepared
from epochal.cdk.parts.functions import Code
from epochal.cdk.parts.layers import Platform, brought, bundled, checking, vendored
from epochal.cdk.targets import Target, architecture, wheels
from epochal.cdk.user_cache import user_cache
from epochal.lazy_dataclasses import dataclass
from epochal.settings import LAMBDA_PYTHON

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
        folder = cache / hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:12]
        library = partial(prepared, _PACKAGE, cache=folder, below="python/epochal")
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

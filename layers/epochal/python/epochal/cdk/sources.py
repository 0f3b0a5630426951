"""Where the code comes from that a deployment runs: the library, a folder for each function, and third-party packages.

    shipped          what was installed with this package, wherever that is
    in_repository    what is in a checkout

Third-party packages are fetched by pip for the functions' Python and processor, and kept: a container is never needed,
and a registry is asked once for each set of pins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aws_cdk import aws_lambda as lambda_

from epochal.cdk.parts.functions import Code
from epochal.cdk.parts.layers import Platform, bundled, prepared, vendored
from epochal.cdk.targets import Target, architecture, wheels
from epochal.local.programs import user_cache
from epochal.settings import LAMBDA_PYTHON

PINS: Final = ("requirements", "boto3")
"""Files of pins: what functions always need, and boto3 where a stage wants the one that was tested."""

_ROOM: Final = Path(__file__).resolve().parent
_PACKAGE: Final = _ROOM.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the functions' code comes from.

    Attributes:
        library: layer 1, given the Python that it has to run on.
        vendor: layer 2, given the platform it has to fit.
        sdk: a layer with the boto3 that was tested, given the same.
        packages: a layer of what a file of requirements names, given the same.
        lambdas: one folder for each function.
        root: where entries of reactions are looked for.
    """

    library: Callable[[str], Path]
    vendor: Callable[[Platform], Path]
    sdk: Callable[[Platform], Path]
    packages: Callable[[Path, Platform], Path]
    lambdas: Path
    root: Path

    @classmethod
    def shipped(cls) -> Sources:
        """The sources that this package brought; entries of reactions are looked for from the working directory."""
        cache = user_cache()
        # Another installation's library is another.
        own = cache / hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:12]
        pins, sdk = (_shipped(f"layers/vendor/{name}.txt") for name in PINS)
        return cls(
            library=lambda python: prepared(_PACKAGE, python, own, below="python/epochal"),
            vendor=lambda platform: vendored(pins, platform, cache),
            sdk=lambda platform: vendored(sdk, platform, cache),
            packages=lambda requirements, platform: bundled(requirements, platform, cache),
            lambdas=_shipped("lambdas"),
            root=Path.cwd(),
        )

    @classmethod
    def in_repository(cls, root: Path) -> Sources:
        """The sources of the checkout at `root`."""
        root = root.resolve()
        library, cache = root / "layers" / "epochal", root / ".cache" / "layers"
        pins, sdk = (root / "layers" / "vendor" / f"{name}.txt" for name in PINS)
        return cls(
            library=lambda python: prepared(library, python, cache),
            vendor=lambda platform: vendored(pins, platform, cache),
            sdk=lambda platform: vendored(sdk, platform, cache),
            packages=lambda requirements, platform: bundled(requirements, platform, cache),
            lambdas=root / "lambdas",
            root=root,
        )


def code_of(
    sources: Sources,
    target: Target = Target.AWS,
    *,
    python: str = LAMBDA_PYTHON,
    processor: lambda_.Architecture | None = None,
    sdk: bool = False,
) -> Code:
    """The functions' code for a target; its second layer is fetched if it is not there yet, and with `sdk` a third.

    Raises:
        InstallerFailed: it could not be.
    """
    platform = wheels(target, python, processor)
    return Code(
        library=sources.library(platform.python),
        vendor=sources.vendor(platform),
        sdk=sources.sdk(platform) if sdk else None,
        packages=lambda requirements: sources.packages(requirements, platform),
        lambdas=sources.lambdas,
        architecture=architecture(target, processor),
        python=python,
    )


def _shipped(name: str) -> Path:
    """A folder that the wheel has in this room, and a checkout at the top."""
    packed = _ROOM / "shipped" / name
    return packed if packed.exists() else _ROOM.parents[4] / name

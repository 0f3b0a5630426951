"""Where a checkout keeps what is fetched and what is running.

    .cache/     what was fetched and checked: DynamoDB Local; safe to delete, fetched again
    .epochal/   what runs now: logs, scratch, the state file of the embedded AWS, the outputs of the last deployment;
                and what is kept of it while it does not

Both are in the checkout, so two checkouts on one machine do not meet, and both are ignored by git.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from epochal.local.errors import NotACheckout

MARKER = "cdk.json"


@dataclass(frozen=True, slots=True)
class Places:
    """The paths of one checkout, whose root is `root`."""

    root: Path

    @property
    def cache(self) -> Path:
        """For what was fetched."""
        return self.root / ".cache"

    @property
    def running(self) -> Path:
        """For what runs."""
        return self.root / ".epochal"

    @property
    def cdk(self) -> Path:
        """The CDK command line."""
        return self.root / "node_modules" / ".bin" / "cdk"


def here(start: Path | None = None) -> Places:
    """The checkout around `start` (the working directory), or the one that this library is part of.

    Raises `NotACheckout` when there is neither.
    """
    for first in (start or Path.cwd(), Path(__file__)):
        for directory in (first, *first.resolve().parents):
            if (directory / MARKER).is_file():
                return Places(directory.resolve())
    raise NotACheckout(str(start or Path.cwd()))

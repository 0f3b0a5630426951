"""Tagged events in Sekiban's tables for the tools: proven."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.contrib.sekiban.store import opened
from epochal.proving.proof import ProofRun
from epochal.proving.writers import ProofWriter, tag_writers


def writers(proof: ProofRun, _library: str, _served: str) -> Iterator[ProofWriter]:
    """One tag by the library, and one over HTTP."""
    yield from tag_writers(proof, "dcb", opened(proof.store), "/dcb")

"""Whether an append kept to what its caller expected of the stream, by the images of the Tip."""

from __future__ import annotations

from epochal.model.outcomes import Appended, Conflict
from epochal.model.versions import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, ExpectedVersion, Token
from epochal.plan.values import Item


def check_appended(expected: ExpectedVersion, outcome: Appended, tips: list[Item]) -> None:
    """The Tip that the append followed upon was the one expected."""
    (place,) = [at for at, tip in enumerate(tips) if tip["etag"]["S"] == outcome.token.etag]
    before = tips[place - 1] if place else None
    assert before is None or "z" not in before, "appended to a deleted stream"
    assert meets(expected, before), f"appended on {_shown(before)}, though {expected} was expected"


def check_conflict(expected: ExpectedVersion, conflict: Conflict) -> None:
    """What stood in the way was not what was expected."""
    if conflict.deleted:
        return
    exists = conflict.token is not None
    found: Item | None = None
    if conflict.token is not None:
        found = {"n": {"N": str(conflict.version)}, "etag": {"S": conflict.token.etag or ""}}
    assert not meets(expected, found), (
        f"a false conflict: {expected}, and {'it was so' if exists else 'none'}"
    )


def meets(expected: ExpectedVersion, tip: Item | None) -> bool:
    """Whether a Tip is what a writer expects; None where there is no stream."""
    version = 0 if tip is None else int(tip["n"]["N"])
    if expected is ANY:
        return True
    if expected in (NO_STREAM, STREAM_EXISTS):
        return (tip is None) == (expected is NO_STREAM)
    if isinstance(expected, Token):
        return tip is not None and (version, tip["etag"]["S"]) == (expected.version, expected.etag)
    assert isinstance(expected, AtVersion)
    return version == expected.version


def _shown(tip: Item | None) -> str:
    return "nothing" if tip is None else f"version {tip['n']['N']}, etag {tip['etag']['S']}"

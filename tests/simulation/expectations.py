"""Whether an append kept to what its caller expected of the stream, by what was seen of its head."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tokens import Token
from tests.simulation.stream_items import HeadSeen, same

AsGood = Callable[[Token, Token], bool]


def check_appended(
    expected: ExpectedVersion, outcome: Appended, heads: Sequence[HeadSeen], as_good: AsGood
) -> None:
    """Check that an append followed the head that was expected."""
    (place,) = [at for at, head in enumerate(heads) if head.etag == outcome.token.etag]
    check_followed([expected], heads[place - 1] if place else None, as_good)


def check_followed(expected: Sequence[ExpectedVersion], before: HeadSeen | None, as_good: AsGood) -> None:
    """Check that an append's previous head was expected by one of the callers."""
    assert before is None or not before.deleted, "appended to a deleted stream"
    seen = None if before is None else before.token
    met = any(meets(each, seen, as_good) for each in expected)
    assert met, f"appended on {seen}, though {expected} was expected"


def check_conflict(expected: ExpectedVersion, conflict: Conflict) -> None:
    """Check that a conflict's head was not the expected one."""
    if not conflict.deleted:
        assert not meets(expected, conflict.token), f"a false conflict: {expected}, and it was so"


def meets(expected: ExpectedVersion, found: Token | None, as_good: AsGood = same) -> bool:
    """Return whether a head is what a writer expects; None is no stream."""
    match expected:
        case Token():
            return found is not None and as_good(expected, found)
        case AtVersion(version=version):
            return version == (0 if found is None else found.version)
        case _:
            return expected is ANY or (found is None) == (expected is NO_STREAM)

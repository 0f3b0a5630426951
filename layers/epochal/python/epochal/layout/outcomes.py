"""The outcomes that a layout returns for an append. The store adds the capacity to them.

    Appended        of one stream: first index, version and token; of several: the outcome of each, in `streams`
    Conflict        of one stream: its current head, in `refused`; of several: the streams that are not as expected
    Undetermined    the evidence is pruned; of several streams, in all of them

A condition outside the streams may also prevent an append: then the conflict has the `events` that match the condition,
or, in `unmet`, items of other tables as DynamoDB stores them, which the store converts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from epochal.model.capacity import NOTHING, Capacity
from epochal.model.outcomes import Appended, Conflict, Outcome, RefusedAppend, Undetermined

if TYPE_CHECKING:
    from epochal.layout.streams import Head

T = TypeVar("T")


def conflict_at(head: Head | None) -> Conflict:
    """Make the conflict of an append to a stream with this current head; None if there is no stream."""
    refused = RefusedAppend(head=head)
    if head is None:
        return Conflict(refused=refused)
    return Conflict(version=head.version, token=head.token(), deleted=head.deleted, refused=refused)


def refusing_head(conflict: Conflict) -> Any:
    """Return the head that came with the conflict of one stream; None if there is no stream."""
    return None if conflict.refused is None else conflict.refused.head


def combine_outcomes(outcomes: Mapping[str, Outcome], capacity: Capacity = NOTHING) -> Outcome:
    """Combine streams' outcomes into one: a conflict if any, else undetermined if any, else appended."""
    if conflicts := _those(outcomes, Conflict):
        return Conflict(streams=conflicts, capacity=capacity)
    if undetermined := _those(outcomes, Undetermined):
        return Undetermined(streams=undetermined, capacity=capacity)
    appended = _those(outcomes, Appended)
    return Appended(
        streams=appended, replayed=any(outcome.replayed for outcome in appended.values()), capacity=capacity
    )


def _those(outcomes: Mapping[str, Outcome], kind: type[T]) -> dict[str, T]:
    return {stream: outcome for stream, outcome in outcomes.items() if isinstance(outcome, kind)}

"""What runs as several reactions under one name, as a process does.

Whatever takes a reaction also takes a composite: a function, the command line, a feed in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from epochal.feed.history import FeedEvent
    from epochal.reactions.reaction import Reaction
    from epochal.store.streams import Streams

MARK: Final = "__composite__"
"""The attribute of a decorated class that has the composite which the decorator made of it."""

OnPassed = Callable[[Any, "FeedEvent"], object]
"""Called with each input that a composite passes: why, and the event."""


class Composite:
    """Several reactions with one name.

    Attributes:
        name: of all of them together; the names of their groups begin with it.
    """

    name: str

    def reactions(self, streams: Streams, on_passed: OnPassed = ..., /) -> Sequence[Reaction]:
        """Its reactions, the first of which takes inputs; `streams` is where they append."""
        raise NotImplementedError

    def code_names(self) -> frozenset[str]:
        """Where its code is, that of its earlier versions too (`reactions.reaction.code_name`)."""
        raise NotImplementedError


def composite_of(found: object) -> Composite | None:
    """The composite that something is, or that its decorator has made of a class; None for anything else."""
    made = found if isinstance(found, Composite) else getattr(found, "__dict__", {}).get(MARK)
    return made if isinstance(made, Composite) else None

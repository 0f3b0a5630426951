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
"""Called with each input that a composite skips: the reason and the event."""


class Composite:
    """Several reactions under one name.

    Attributes:
        name: the common beginning of the reactions' names, and so of the names of their groups.
    """

    name: str

    def reactions(self, streams: Streams, on_passed: OnPassed = ..., /) -> Sequence[Reaction]:
        """The reactions. The first one takes the inputs; all of them may append to `streams`."""
        raise NotImplementedError

    def code_names(self) -> frozenset[str]:
        """Dotted names of the code that it runs, including earlier versions that still run (see `code_name`)."""
        raise NotImplementedError


def composite_of(candidate: object) -> Composite | None:
    """The composite that something is, or that its decorator has made of a class; None for anything else."""
    composite = (
        candidate if isinstance(candidate, Composite) else getattr(candidate, "__dict__", {}).get(MARK)
    )
    return composite if isinstance(composite, Composite) else None

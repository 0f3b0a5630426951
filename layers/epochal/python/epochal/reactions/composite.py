"""Several reactions that run under one name, as a process does.

Whatever takes a reaction also takes a composite: a function, the command line, a feed in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from epochal.feed.events import FeedEvent
    from epochal.reactions.definition import Reaction
    from epochal.store.streams import Streams

MARK: Final = "__composite__"
"""Name of the attribute of a decorated class in which the decorator stores the composite."""

OnPassed = Callable[[Any, "FeedEvent"], object]
"""A function that is called with each input that a composite (several reactions under one name) skips: the reason for
skipping, and the event.
"""


class Composite:
    """Several reactions that run under one name, as a process does.

    Attributes:
        name: common beginning of the reactions' names, and so of the names of their groups.
    """

    name: str

    def reactions(self, streams: Streams, on_passed: OnPassed = ..., /) -> Sequence[Reaction]:
        """Return the composite's reactions. The first one takes the inputs; all may append to `streams`.

        Args:
            streams: store that the reactions may append to.
            on_passed: function that is called for each input that is skipped.
        """
        raise NotImplementedError

    def code_names(self) -> frozenset[str]:
        """Return the dotted names of the code that the reactions run, with that of earlier versions that still run.

        See `code_name`.
        """
        raise NotImplementedError


def composite_of(candidate: object) -> Composite | None:
    """Return the composite that an object is, or that its decorator made of a class; else None."""
    composite = (
        candidate if isinstance(candidate, Composite) else getattr(candidate, "__dict__", {}).get(MARK)
    )
    return composite if isinstance(composite, Composite) else None

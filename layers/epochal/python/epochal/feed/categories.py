"""What a reader of a partition asks for: streams of categories, or whatever a predicate takes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from epochal.layout.port import Categories
from epochal.model.plain import must_be_done, must_be_plain
from epochal.model.spans import Span

Predicate = Callable[[Span], bool]


def wanted(
    known: Callable[[], Categories], categories: Collection[str] | None, predicate: Predicate | None
) -> Predicate:
    """What a reader asked for.

    Args:
        known: which streams of the partition belong to a category; asked where there are any.

    Raises:
        InvalidInput: the predicate would have to be awaited; what it returns would count as true.
    """
    if predicate is not None:
        must_be_plain(predicate, "predicate")

    of = None if categories is None else known()

    def is_wanted(span: Span) -> bool:
        in_category = categories is None or of is None or of.hold(span.stream, categories)
        return in_category and (predicate is None or must_be_done(predicate(span), "predicate"))

    return is_wanted

"""Which streams belong to a category: each layout tells (FORMATS §4)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from epochal.layout.port import Categories
from epochal.layout.registry import layout_of
from epochal.model.aggregates import AggregateTypes
from epochal.model.plain import must_be_done, must_be_plain
from epochal.model.spans import Span

Predicate = Callable[[Span], bool]


def categories_of(partition: int, types: AggregateTypes | None = None) -> Categories:
    """The categories of a partition's streams; `types` are those declared, where they are known."""
    return layout_of(partition).port.categories(types)


def wanted(
    partition: int,
    categories: Collection[str] | None,
    predicate: Predicate | None,
    types: AggregateTypes | None = None,
) -> Predicate:
    """What a reader of a partition asked for.

    Raises:
        InvalidInput: the predicate would have to be awaited; what it returns would count as true.
    """
    if predicate is not None:
        must_be_plain(predicate, "predicate")
    known = None if categories is None else categories_of(partition, types)

    def is_wanted(span: Span) -> bool:
        in_category = categories is None or known is None or known.hold(span.stream, categories)
        return in_category and (predicate is None or must_be_done(predicate(span), "predicate"))

    return is_wanted

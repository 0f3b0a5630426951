"""Which streams belong to a category: it is the name's, the aggregate's type, or the tag's group (FORMATS §4).

An aggregate's id tells its type to those who know which types that hold `-` are declared. To others, all ids that begin
with a category and `-` are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from epochal.layout.registry import source_of
from epochal.model.aggregates import AggregateTypes
from epochal.model.dcb import group_of
from epochal.model.names import category_of
from epochal.model.plain import must_be_done, must_be_plain
from epochal.model.spans import Span

Predicate = Callable[[Span], bool]


def in_categories(
    partition: int, stream: str, categories: Collection[str], types: AggregateTypes | None = None
) -> bool:
    """Whether a stream of a partition is in one of these; `types` are those declared, where they are known."""
    match source_of(partition):
        case "journal" if types is not None:
            aggregate = types.read(stream)
            return aggregate is not None and aggregate.type in categories
        case "journal":
            return any(stream.startswith(f"{kind}-") for kind in categories)
        case "dcb":
            return group_of(stream) in categories
        case _:
            return category_of(stream) in categories


def category_in(partition: int, stream: str, types: AggregateTypes | None = None) -> str:
    """The category of a stream of a partition; of an aggregate of unknown types, what precedes its first `-`."""
    match source_of(partition):
        case "journal":
            aggregate = None if types is None else types.read(stream)
            return category_of(stream) if aggregate is None else aggregate.type
        case "dcb":
            return group_of(stream)
        case _:
            return category_of(stream)


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

    def is_wanted(span: Span) -> bool:
        in_category = categories is None or in_categories(partition, span.stream, categories, types)
        return in_category and (predicate is None or must_be_done(predicate(span), "predicate"))

    return is_wanted

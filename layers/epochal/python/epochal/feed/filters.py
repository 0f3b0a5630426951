"""Filters of the feed: which spans a reader wants, by the categories of their streams and by a predicate."""

from __future__ import annotations

from collections.abc import Callable, Collection

from epochal.layout.categories import Categories
from epochal.layout.changes import Span
from epochal.model.kinds import must_be_names
from epochal.model.plain_functions import must_be_done, must_be_plain

Predicate = Callable[[Span], bool]


def span_filter(
    load_categories: Callable[[], Categories], categories: Collection[str] | None, predicate: Predicate | None
) -> Predicate:
    """Return a filter of spans: those in `categories` that satisfy `predicate`; None for either means all.

    Args:
        load_categories: returns which streams of the partition belong to a category; called if there are categories.

    Raises:
        InvalidInput: the categories are no names; or the predicate would have to be awaited, and what it returns would
            count as true.
    """
    check_filter(categories, predicate)
    if categories is None and predicate is None:
        return accept_all
    category_of = None if categories is None else load_categories()

    def is_wanted(span: Span) -> bool:
        """Return whether a span is in one of the categories and satisfies the predicate."""
        in_category = categories is None or category_of is None or category_of.hold(span.stream, categories)
        return in_category and (predicate is None or must_be_done(predicate(span), "predicate"))

    return is_wanted


def accept_all(_: Span) -> bool:
    """Accept every span."""
    return True


def check_filter(categories: Collection[str] | None, predicate: Predicate | None) -> None:
    """Raise `InvalidInput` unless categories are names and the predicate is a plain function, if given.

    So the error is also raised for an index without partitions, where nothing is read.
    """
    if categories is not None:
        must_be_names(categories, "categories")
    if predicate is not None:
        must_be_plain(predicate, "predicate")

"""Ids of tests are the same in every process, which processes that share the tests compare before they begin.

The order of a set of texts differs from process to process, and so do addresses. Two processes agree by chance now and
then, so that what is told late and seldom without this is told at once, with the test and what to do.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

DIFFERS: Final = re.compile(r" at 0x[0-9a-f]|frozenset\(|\{[^:{}]*,")
"""An address, or what a set with more than one element looks like."""


def refuse_ids_that_differ(item: pytest.Item) -> None:
    """Raise `pytest.UsageError` if a test's id or order depends on the process."""
    call = getattr(item, "callspec", None)
    if call is None:
        return
    if DIFFERS.search(call.id):
        raise pytest.UsageError(f"{item.nodeid}: a set or an address is part of its id: give it `ids=`")
    for mark in item.iter_markers("parametrize"):
        if any(
            isinstance(values, set | frozenset) for values in (*mark.args[1:2], mark.kwargs.get("argvalues"))
        ):
            raise pytest.UsageError(f"{item.nodeid}: its parameters are a set, which has no order: sort them")

from __future__ import annotations

import pytest

from epochal.contrib.sekiban import memory_dcb_events
from epochal.errors import InvalidInput
from epochal.model.dcb import TaggedEvent


def test_text_behind_a_byte_order_mark_is_refused_and_bytes_are_what_they_are() -> None:
    store = memory_dcb_events()
    with pytest.raises(InvalidInput, match="must be JSON without a byte order mark before it") as caught:
        store.append([TaggedEvent(type="A", data="\ufeff{}", tags=("a:1",))])
    assert caught.value.field == "events[0].data"
    store.append([TaggedEvent(type="A", data=b"\xef\xbb\xbf{}", tags=("a:1",))])

from __future__ import annotations

from epochal.contrib.sekiban import memory_dcb_events
from epochal.model.events import Event
from epochal.plan.ops import Get

MARKED = b"\xef\xbb\xbf{}"


def test_what_begins_with_a_byte_order_mark_comes_back_to_the_byte_and_is_no_payload_of_the_original() -> (
    None
):
    store = memory_dcb_events()
    (made,) = store.append([Event(type="A", data=MARKED, tags=("a:1",))]).events
    found = store.event(made.id)
    assert found is not None
    assert found.data == MARKED
    item = store.driver.ask(Get(table=store.site.events, key=store.site.keys.event(made.id))).item
    assert item is not None
    assert (item["payload"], item["data"]) == ({"S": "null"}, {"B": MARKED})

"""`.` and `..` are steps in a path to HTTP clients, which send `/streams/../events` as `/events`: nothing new is called
so.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal import Event, StreamAppend
from epochal.contrib.equinox import memory_tips
from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter import store as aggregates
from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.sekiban import memory_dcb_events, memory_projection_states, projections
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.errors import InvalidInput
from epochal.store import streams, tagged
from epochal.store.joined import JoinedAppends
from epochal.store.listings import listings_of
from epochal.testing.stores import memory_streams, memory_tagged_events

STEPS = (".", "..")
OPENED = Event(type="Opened")
CREATED = AggregateEvent(type="Created", data=b"{}")
NONE = {"events_processed": 0, "last_sortable_id": ""}

WRITES: dict[str, Callable[[str], object]] = {
    "a stream": lambda name: memory_streams().append(name, [OPENED]),
    "a stream as tips": lambda name: memory_tips().append(name, [OPENED]),
    "a stream under a key": lambda name: memory_streams().append(name, [OPENED], idempotency_key="k"),
    "one of several streams": lambda name: memory_streams().append_all(
        [StreamAppend(stream="Door-1", events=[OPENED]), StreamAppend(stream=name, events=[OPENED])]
    ),
    "a stream of joined writers": lambda name: JoinedAppends(memory_streams()).append(name, [OPENED]),
    "an aggregate": lambda name: memory_aggregates().append(
        aggregate_id("account", name), [CREATED], snapshot=b"{}"
    ),
    "a type of aggregates": lambda name: memory_aggregates().append(
        AggregateId(type=name, value="1"), [CREATED], snapshot=b"{}"
    ),
    "a tag": lambda name: memory_tagged_events().append([Event(type="E", tags=["a:1", name])]),
    "a tag in Sekiban's tables": lambda name: memory_dcb_events().append([Event(type="E", tags=[name])]),
    "a projection": lambda name: memory_projection_states().save(name, "v1", [b"x"], **NONE),  # type: ignore[arg-type]
    "a version of a projection": lambda name: memory_projection_states().save("Totals", name, [b"x"], **NONE),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_called_as_a_step_in_a_path(write: str, name: str) -> None:
    with pytest.raises(InvalidInput, match="steps in a path"):
        WRITES[write](name)


@pytest.mark.parametrize("name", ["...", ".a", "..-1", "a.."])
@pytest.mark.parametrize("write", WRITES)
def test_names_that_only_begin_or_end_so_are_names(write: str, name: str) -> None:
    if write != "a type of aggregates" or "-" not in name:
        WRITES[write](name)


@pytest.mark.parametrize("name", STEPS)
def test_what_was_called_so_before_can_be_read_but_not_gone_on_with(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = memory_streams(), memory_tagged_events(), memory_aggregates(), memory_projection_states()
    with monkeypatch.context() as before:
        for module in (streams, tagged, aggregates, projections):
            before.setattr(module, "no_step", lambda *_: None)
        stores[0].append(name, [OPENED])
        stores[1].append([Event(type="E", tags=[name])])
        stores[2].append(aggregate_id("account", name), [CREATED], snapshot=b"{}")
        stores[3].save(name, name, [b"x"], **NONE)  # type: ignore[arg-type]

    assert [event.type for event in stores[0].read(name)] == ["Opened"]
    assert len(list(listings_of(stores[1]).tagged(name))) == 1
    assert stores[2].latest_snapshot(aggregate_id("account", name)) is not None
    assert len(stores[3].list(name)) == 1
    with pytest.raises(InvalidInput, match="steps in a path"):
        stores[0].append(name, [OPENED])
    copied = StreamCopier(source=StreamSource(stores[0]), target=memory_tips()).copy(name)
    assert (copied.ending, "steps in a path" in copied.why) == ("refused", True)
    assert stores[0].delete(name) is not None

"""Events with ids in named streams: they are kept, and a batch that is sent again is known by them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from epochal.codec.bodies import DIRECT, Encoded
from epochal.contrib.publish.cloudevents import cloud_event, message
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.errors import ConflictError, InvalidInput, OutcomeUndetermined, StreamDeleted
from epochal.feed.conversations import conversation, tree
from epochal.feed.events import FeedEvent
from epochal.layout.queries import IdTaken
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.model.stream_append import StreamAppend
from epochal.model.tokens import Token
from epochal.pages.identified import LOOKED_BACK
from epochal.pages.items import read_page
from epochal.pages.tags.entries import read_label
from epochal.plan.ops import Op, Query, Reply
from epochal.reactions.definition import Reaction
from epochal.store.driver import Driver, Meter
from epochal.store.joined import JoinedAppends
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import Fault, Faults
from epochal.testing.stores import memory_streams, memory_tables

S = "Order-1"


def id_of(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def batch(*numbers: int, size: int = 2) -> list[Event]:
    return [Event(type=f"E{number}", data=b"x" * size, id=id_of(number)) for number in numbers]


def pages_of(streams: Streams) -> Query:
    return Query(table=streams.table, partition=("p", {"S": S}))


def ids(streams: Streams, stream: str = S) -> list[str]:
    return [event.id for event in streams.read(stream)]


def test_an_id_is_kept_with_its_event_and_shown_wherever_that_is_read() -> None:
    streams = memory_streams()
    given = Event(
        type="E",
        id=id_of(0xA).upper(),
        meta=b"{}",
        correlation_id="c",
        causation_id="k",
        timestamp="2020-01-01T00:00:00Z",
    )
    streams.append(S, [given, Event(type="F")])

    first, second = streams.read(S)
    loaded = streams.load(S)

    assert (first.id, second.id) == (id_of(0xA), "")
    assert (first.place, first.tags, first.meta, first.correlation_id) == ("", (), b"{}", "c")
    assert loaded is not None
    assert [event.id for event in loaded.events] == [id_of(0xA), ""]
    assert first.again() == replace(given, id=id_of(0xA), timestamp=first.timestamp)


@pytest.mark.parametrize("bad", ["", "7", id_of(1)[:-1], "x" * 36])
def test_an_id_that_is_no_uuid_is_refused_by_its_place(bad: str) -> None:
    with pytest.raises(InvalidInput, match=r"events\[1\].id: must be a UUID"):
        memory_streams().append(S, [Event(type="E"), Event(type="E", id=bad)])


def test_an_event_with_tags_takes_no_id_in_a_stream() -> None:
    with pytest.raises(InvalidInput, match=r"events\[0\].id: must not be given with tags in a stream"):
        memory_streams().append(S, [Event(type="E", id=id_of(1), tags=("a",))])


# The table of the guide: what is there, what is expected, what is answered. Three events are there, then another.


def placed() -> tuple[Streams, Token]:
    """Events 0 to 2 in one append, then event 9; and the token before them."""
    streams = memory_streams()
    before = streams.append(S, [Event(type="Begun")]).token
    streams.append(S, batch(0, 1, 2), expected=before)
    streams.append(S, batch(9))
    return streams, before


ANYWHERE = (ANY, STREAM_EXISTS)


@pytest.mark.parametrize("expected", ANYWHERE)
@pytest.mark.parametrize(
    ("sent", "first"), [((0, 1, 2), 1), ((0,), 1), ((1, 2), 2), ((0, 1, 2, 9), 1), ((2, 9), 3), ((9,), 4)]
)
def test_what_is_there_in_a_row_is_answered_as_it_was_wherever_it_is(
    expected: ExpectedVersion, sent: Sequence[int], first: int
) -> None:
    streams, _ = placed()

    again = streams.append(S, batch(*sent), expected=expected)

    assert (again.first, again.version, again.replayed) == (first, first + len(sent), True)
    assert len(ids(streams)) == 5


@pytest.mark.parametrize("expected", ANYWHERE)
@pytest.mark.parametrize("sent", [(2, 3), (0, 1, 2, 3), (3, 0), (1, 0), (0, 2), (1, 9)])
def test_what_is_there_in_part_or_otherwise_is_refused_by_an_id_and_nothing_is_written(
    expected: ExpectedVersion, sent: Sequence[int]
) -> None:
    streams, _ = placed()

    with pytest.raises(IdTaken, match=f"Order-1 has the id {id_of(0)[:-1]}., but not all") as refused:
        streams.append(S, batch(*sent), expected=expected)

    assert refused.value.field == "events"
    assert len(ids(streams)) == 5


Place = Callable[[Token], ExpectedVersion]
PLACES: Sequence[Place] = (lambda token: token, lambda token: AtVersion(token.version))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sent", [(0, 1, 2), (0,), (0, 1), (0, 1, 2, 9)])
def test_what_is_there_at_the_expected_place_is_answered_as_it_was(place: Place, sent: Sequence[int]) -> None:
    streams, before = placed()

    again = streams.append(S, batch(*sent), expected=place(before))

    assert (again.first, again.version, again.replayed) == (1, 1 + len(sent), True)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sent", [(0, 1, 2, 3), (0, 1, 2, 9, 3), (1, 2), (3,), (0, 2)])
def test_anything_else_at_the_expected_place_is_a_conflict(place: Place, sent: Sequence[int]) -> None:
    streams, before = placed()

    with pytest.raises(ConflictError) as conflict:
        streams.append(S, batch(*sent), expected=place(before))

    assert conflict.value.outcome is not None
    assert conflict.value.outcome.version == 5


def test_a_batch_that_began_its_stream_is_known_however_far_back_it_is() -> None:
    streams = memory_streams()
    streams.append(S, batch(0, 1), expected=NO_STREAM)
    for number in range(LOOKED_BACK * 3):
        streams.append(S, batch(10 + number, size=2_000))

    again = streams.append(S, batch(0, 1), expected=NO_STREAM)

    assert (again.first, again.version, again.replayed) == (0, 2, True)
    assert again.capacity.requests <= 3
    with pytest.raises(ConflictError):
        streams.append(S, batch(0, 2), expected=NO_STREAM)


def test_an_append_that_finds_what_it_expects_does_not_look_at_ids() -> None:
    streams = memory_streams()
    token = streams.append(S, batch(0)).token

    again = streams.append(S, batch(0), expected=token)

    assert (again.first, again.replayed, again.capacity.requests) == (1, False, 1)


def test_wherever_it_is_a_batch_is_known_as_far_back_as_the_last_pages_reach() -> None:
    streams = memory_streams()
    for number in range(LOOKED_BACK * 2):
        large = random.Random(number).randbytes(5_000)
        streams.append(S, [Event(type="E", data=large, id=id_of(number))])
    pages = list(map(read_page, streams.driver.ask(pages_of(streams)).items))

    within = streams.append(S, batch(pages[-LOOKED_BACK].index))
    beyond = streams.append(S, batch(pages[-LOOKED_BACK].index - 1))

    assert within.replayed
    assert not beyond.replayed


def test_a_token_of_a_part_of_an_append_is_in_conflict_as_the_version_is() -> None:
    streams = memory_streams()
    whole = streams.append(S, batch(0, 1, 2))
    part = streams.append(S, batch(0, 1))

    assert streams.append(S, batch(0, 1, 2)).token == whole.token
    assert (part.version, part.token.version) == (2, 2)
    with pytest.raises(ConflictError):
        streams.append(S, batch(7), expected=part.token)


def test_events_of_which_some_have_no_id_are_kept_and_not_looked_for() -> None:
    streams = memory_streams()
    for _ in range(2):
        streams.append(S, [*batch(0), Event(type="E")])
    assert ids(streams) == [id_of(0), "", id_of(0), ""]


def test_contents_are_not_compared() -> None:
    streams = memory_streams()
    streams.append(S, batch(0))
    assert streams.append(S, [Event(type="Other", id=id_of(0))]).replayed


def test_a_stream_that_is_deleted_takes_no_batch_again() -> None:
    streams = memory_streams()
    streams.append(S, batch(0))
    streams.delete(S)
    for expected in (ANY, NO_STREAM):
        with pytest.raises(StreamDeleted):
            streams.append(S, batch(0), expected=expected)


def test_what_is_pruned_at_the_expected_place_leaves_it_open_whether_it_was_there() -> None:
    streams = memory_streams()
    streams.append(S, batch(0, 1), expected=NO_STREAM)
    streams.append(S, batch(2))
    streams.prune(S, 2)

    with pytest.raises(OutcomeUndetermined):
        streams.append(S, batch(0, 1), expected=NO_STREAM)
    assert not streams.append(S, batch(0, 1)).replayed, "wherever it is: as far back as the pages reach"


def test_a_key_decides_where_there_is_one_and_ids_are_part_of_what_it_is_for() -> None:
    streams = memory_streams()
    made = [streams.append(S, batch(0), idempotency_key="k") for _ in range(2)]
    assert [each.replayed for each in made] == [False, True]
    with pytest.raises(InvalidInput, match="was already used for an append with other contents"):
        streams.append(S, batch(1), idempotency_key="k")
    assert not streams.append(S, batch(0), idempotency_key="another").replayed


# What it costs.


def counted(streams: Streams, requests: list[Op]) -> Streams:
    execute = streams.driver.execute

    def noted(op: Op) -> Reply:
        requests.append(op)
        return execute(op)

    return streams.on(Driver(execute=noted, meter=Meter()))


def test_ids_take_no_request_more_and_events_without_them_none_of_the_units() -> None:
    told = dict[bool, list[Op]]()
    for named in (False, True):
        streams = counted(memory_streams(), told.setdefault(named, []))
        token = streams.append(
            S, batch(0) if named else [Event(type="E0", data=b"xx")], expected=NO_STREAM
        ).token
        token = streams.append(S, batch(1) if named else [Event(type="E1", data=b"xx")], expected=token).token
        streams.append(S, batch(2) if named else [Event(type="E2", data=b"xx")])

    assert [type(op) for op in told[True]] == [type(op) for op in told[False]]
    heads = {named: [op.limit for op in ops if isinstance(op, Query)] for named, ops in told.items()}
    assert heads == {False: [1], True: [LOOKED_BACK]}


def test_an_id_takes_twenty_bytes_of_what_is_written() -> None:
    sizes = []
    for given in (None, id_of(1)):
        streams = replace(memory_streams(), now=lambda: 10**18)  # a time takes as many bytes as it has digits
        made = streams.append(S, [Event(type="E", data=b"xx", id=given)])
        sizes.append(made.token.size)
    assert sizes[1] - sizes[0] == 20


def test_what_is_stored_of_an_id_is_what_readers_of_labels_have_always_read() -> None:
    streams = memory_streams()
    streams.append(S, batch(7))
    (item,) = streams.driver.ask(pages_of(streams)).items
    (stored,) = read_page(item).read_frame(0)

    label = read_label(Encoded(DIRECT, stored.label))

    assert (label.id, label.others, label.number) == (id_of(7), (), 0)
    assert stored.label.hex() == "010000" + id_of(7).replace("-", "")


# Beside others.


def test_a_lost_answer_is_no_repeat_of_anothers() -> None:
    faults = Faults(memory_streams().driver.execute, {1: Fault.LOST})
    streams = memory_streams().on(Driver(execute=faults.execute, meter=Meter(), sleep=lambda _: None))
    made = streams.append(S, batch(0), expected=NO_STREAM)
    assert (made.first, made.version, made.replayed) == (0, 1, False)


def test_a_batch_to_several_streams_is_known_where_it_is_in_all_of_them() -> None:
    streams = memory_streams()
    both = [
        StreamAppend(stream="A-1", events=batch(0, 1), expected=NO_STREAM),
        StreamAppend(stream="B-1", events=batch(2)),
    ]
    streams.append_all(both)

    again = streams.append_all(both)
    other = streams.try_append_all([both[0], replace(both[1], events=batch(3))])

    assert {name: (each.first, each.replayed) for name, each in again.streams.items()} == {
        "A-1": (0, True),
        "B-1": (0, True),
    }
    assert not isinstance(other, Appended)
    assert ids(streams, "B-1") == [id_of(2)]


def test_writers_who_join_their_appends_send_those_with_ids_by_themselves() -> None:
    together = JoinedAppends(memory_streams())
    assert [together.append(S, batch(0)).replayed for _ in range(2)] == [False, True]


def test_events_with_tags_beside_them_leave_the_ids_of_others_as_they_are() -> None:
    streams = memory_streams()
    made = streams.append(S, [*batch(0), Event(type="T", tags=("a",))])
    named, tagged = streams.read(S)
    assert (named.id, named.tags, named.place) == (id_of(0), (), "")
    assert made.events == (replace(tagged, append_id=None, trail=made.events[0].trail),)
    assert tagged.id not in ("", id_of(0))


def test_a_copy_has_the_ids_and_one_that_has_others_differs() -> None:
    tables = memory_tables()
    source, target = memory_streams(), memory_streams(tables)
    source.append(S, [*batch(0, 1), Event(type="E")])

    copied = StreamCopier(source=StreamSource(source), target=target).copy(S)

    assert (copied.ending, ids(target)) == ("copied", [id_of(0), id_of(1), ""])
    other = memory_streams()
    other.append(S, [*batch(0, 2), Event(type="E")])
    assert StreamCopier(source=StreamSource(source), target=other).copy(S).ending == "differs"


def test_the_feed_a_reaction_and_cloudevents_have_an_id_and_name_the_event_by_it() -> None:
    memory = MemoryStore()
    memory.streams.append(S, [*batch(0), Event(type="E")])
    handled: list[FeedEvent] = []
    memory.react(Reaction(name="seen", handler=lambda delivery: handled.extend(delivery.events)))

    assert [(event.id, event.tags, event.home, event.first) for event in handled] == [
        (id_of(0), (), "", True),
        (None, (), "", True),
    ]
    shown = [cloud_event(event, None) for event in handled]
    sent = [
        message(event, seen, "here", keep=lambda _: "", most=1_000)
        for event, seen in zip(handled, shown, strict=True)
        if seen is not None
    ]
    assert [each.id for each in sent] == [id_of(0), f"{S}@1"]


def test_a_stream_that_begins_anew_has_no_ids_of_before() -> None:
    streams = memory_streams()
    streams.append(S, batch(0, 1))
    streams.delete(S, leave_open=True)
    assert not streams.append(S, batch(0, 1)).replayed
    assert streams.append(S, batch(0, 1)).first == 2


def test_what_an_event_with_an_id_caused_is_below_it_whether_it_is_named_by_that_or_by_its_place() -> None:
    memory = MemoryStore()
    memory.streams.append(S, [Event(type="Paid", id=id_of(0), correlation_id="c")])
    for number, cause in enumerate((id_of(0), f"{S}@0")):
        effect = Event(type="Sent", causation_id=cause, correlation_id="c")
        memory.streams.append(f"Mail-{number}", [effect])
    memory.index()

    for wanted in ("c", id_of(0), f"{S}@0"):
        (root,) = tree(conversation(memory.feed, wanted, 10))
        assert (root.event.type, [each.event.type for each in root.caused]) == ("Paid", ["Sent", "Sent"])

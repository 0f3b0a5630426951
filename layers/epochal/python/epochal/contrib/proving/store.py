"""Checks of what a stage stores and tells: appends, the feed, uploads, a long catch-up, quarantine."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from epochal.care.quarantined import PoisonRecord, PoisonRecords
from epochal.contrib.proving.catching_up import FeedPlace, ends_of_feed, find_place, has_reached
from epochal.contrib.proving.deployed_stacks import functions_of
from epochal.contrib.proving.proof import CATEGORY, Broken, ProofRun, Trial, Unproven, trial
from epochal.contrib.proving.writers import (
    KIND,
    NamedOverHttp,
    ProofWriter,
    StreamWriter,
    writers_of,
)
from epochal.contrib.timers.protocol import Armed, Wake
from epochal.dynamo.aws_errors import translate_errors
from epochal.errors import InvalidRequest
from epochal.hosting.deadline import SPARED
from epochal.index.checkpoints import BEGINNING, parse_checkpoint
from epochal.layout.registry import source_of
from epochal.model.events import Event, Recorded
from epochal.model.moments import PER_SECOND, parse_time
from epochal.model.stream_names import TAG_STREAMS, TIMER_FIRED
from epochal.plan.ops import Delete, Put
from epochal.plan.values import number, text
from epochal.plugins import NATIVE
from epochal.scheduling import after, cancel, later, timer_of
from epochal.settings import Settings
from epochal.store.driver import ahead
from epochal.store.streams import Streams

RACERS: Final = 4
RACES: Final = 3

FEED_SECONDS: Final = 90.0
"""Seconds for events to reach the feed: usually two are enough, but the first indexer starts cold."""

HOPS: Final = 20
"""Invocations of the catch-up, in a chain: Lambda takes a chain of some 16 calls for a loop."""

EVENTS_A_HOP: Final = 16
"""Events of an invocation: each takes a small part of it, so that an event begun in time also ends in time."""

REACTION: Final = "proof"
"""Name of the reaction that a stage proves its catch-ups with (docs/first-day.md)."""

PROCESS: Final = "EpochalProcess"
PERFORMED: Final = [
    *("$input", "$call", "Echoed", "$performed"),
    *("$input", "$append", "$done", "$performed"),
]
"""Types of the events that the stage's process `EpochalProcess` has in its stream at its end."""

TIMER_SECONDS: Final = 5
FAR_MINUTES: Final = 30
"""Minutes until the far timer is due: longer than a queue can delay a message."""

WRONG: Final = 3
"""Place in the bulk of the append that expects a version which its stream does not have."""

BEYOND: Final = 99

UPLOAD: Final = 1_000_000
"""Bytes of the uploaded body: more than an item holds."""


def store_checks(proof: ProofRun) -> Iterator[Trial]:
    """Yield the checks of this module in order: those that append events come before the feed's."""
    for writer in writers_of(proof):
        yield Trial(
            name=f"appends: {writer.label}",
            claim=f"{writer.label}: one of {RACERS} writers at the same version wins, an idempotency key "
            "appends once, and all acknowledged events are read back, once and in order",
            dollars=0.0005,
            tried=partial(appends, writer=writer),
        )
    yield bulk
    for how, read in (("by the library", feed_by_library), ("over HTTP", feed_over_http)):
        yield Trial(
            name=f"feed {how}",
            claim=f"each of these events is read from the feed, {how}, exactly once and in order",
            dollars=0.002,
            tried=partial(feed, read=read),
        )
    yield from (uploads, catch_up, process)
    if proof.store.settings.timers_table:
        yield timers


def appends(proof: ProofRun, *, writer: ProofWriter) -> str:
    """Append to a stream in sequence, in races, under a key; raise `Broken` at wrong outcomes or events.

    Raises:
        Broken: a race has not one winner, a repeated key appends again, or the events read differ.
        Unproven: the writer needs an API that is not there.
    """
    if "HTTP" in writer.label:
        _check_served(proof, writer)
    written = proof.written.setdefault(writer.stream, [])
    proof.removals.append(writer.remove)
    _append(writer, written, proof.numbers(2), state=writer.at())
    _append(writer, written, proof.numbers(1), state=writer.at())
    for _ in range(RACES):
        token, offers = writer.at(), [proof.numbers(1) for _ in range(RACERS)]
        outcomes = list(ahead(partial(writer.append, state=token), offers, RACERS))
        won = [number for number, outcome in zip(offers, outcomes, strict=True) if outcome != "refused"]
        written += [number for offer in won for number in offer]
        if len(won) != 1:
            raise Broken(f"{len(won)} of {RACERS} writers at the same version won, not one")
    key, numbers = str(uuid.uuid4()), proof.numbers(2)
    _append(writer, written, numbers, key=key)
    if (again := writer.append(numbers, key=key)) != "again":
        raise Broken(f"an append with a repeated key was {again}, but should have returned the first append")
    if wrong := differs(written, writer.read()):
        raise Broken(f"when read back, {wrong}")
    return f"{len(written)} events, {RACES} races of {RACERS}"


@trial(
    "appends in one request are independent: a conflict stops no other append, and a repeat appends "
    "nothing twice",
    dollars=0.0001,
)
def bulk(proof: ProofRun) -> str:
    """Send six appends, one at a wrong version, in one request, twice; raise `Broken` at a wrong outcome.

    The appends are to two streams.
    """
    _streams(proof)
    many, few = (proof.name(name) for name in ("bulk-many", "bulk-few"))
    writers = {
        stream: NamedOverHttp("", stream, proof, f"/streams/{stream}", deletion="") for stream in (many, few)
    }
    expected = {stream: list[int]() for stream in writers}
    sent, statuses = list[Mapping[str, Any]](), list[int]()
    for place, stream in enumerate((many, many, few, many, few, many)):
        (of_event,) = proof.numbers(1)
        wrong = place == WRONG
        sent.append(
            {
                "stream": stream,
                "events": [{"type": KIND, "data": {"n": of_event}}],
                "expected": BEYOND if wrong else len(expected[stream]),
                "idempotencyKey": str(uuid.uuid4()),
            }
        )
        statuses.append(HTTPStatus.CONFLICT if wrong else HTTPStatus.CREATED)
        if not wrong:
            expected[stream].append(of_event)
    proof.removals += [writer.remove for writer in writers.values()]
    for repeated in (False, True):
        answer = proof.call("POST", "/appends", {"appends": sent})
        if answer.status != HTTPStatus.OK:
            raise Broken(f"POST /appends returned {answer}")
        results = answer.json["results"]
        if (actual := [result["status"] for result in results]) != statuses:
            raise Broken(f"the appends returned {actual}, not {list(map(int, statuses))}")
        if any(result.get("replayed", repeated) != repeated for result in results):
            raise Broken(f"repeated keys were not reported as replayed: {results}")
    for stream, writer in writers.items():
        proof.written[stream] = expected[stream]
        if unlike := differs(expected[stream], writer.read()):
            raise Broken(f"when read back, {unlike}")
    return f"{len(sent)} appends to {len(writers)} streams, one of them refused, all of them sent twice"


def _check_served(proof: ProofRun, writer: ProofWriter) -> None:
    """Raise `Unproven` unless there is an API and it serves the writer's stream."""
    if proof.http is None:
        raise Unproven("no HTTP API is known: pass its URL with --api")
    if left_out := getattr(writer, "left_out", ""):
        raise Unproven(left_out)


def _append(
    writer: ProofWriter,
    written: list[int],
    numbers: Sequence[int],
    *,
    state: Any = None,
    key: str | None = None,
) -> None:
    """Append events with these numbers to the writer's stream, and add the numbers to `written`.

    Raises:
        Broken: the append was refused, or taken for a repeat.
    """
    if (outcome := writer.append(numbers, state=state, key=key)) != "made":
        raise Broken(f"an append without a conflict was {outcome}")
    written += numbers


def differs(written: Sequence[int], actual: Sequence[int]) -> str:
    """Return in words how the numbers of events read differ from those written; empty if they do not."""
    if list(written) == list(actual):
        return ""
    lost, strange = set(written) - set(actual), set(actual) - set(written)
    if lost:
        return f"{len(lost)} of {len(written)} events are missing"
    if strange:
        return f"{len(strange)} events were read that were never acknowledged"
    if len(actual) != len(written):
        return f"{len(actual) - len(written)} events were read more than once"
    return "the events are out of order"


Read = Callable[[ProofRun, int, str], "tuple[list[tuple[str, int]], str]"]
"""Function that reads a partition of the feed from a checkpoint: stream and number of each event, next checkpoint."""


def feed(proof: ProofRun, *, read: Read) -> str:
    """Follow the feed until it has all written events; raise `Broken` unless each is there once, in order.

    Raises:
        Broken: events are missing, repeated or out of order after `FEED_SECONDS`.
        Unproven: nothing was appended.
    """
    if not any(proof.written.values()):
        raise Unproven("nothing was appended")
    seen_events: dict[str, list[int]] = {stream: [] for stream in proof.written}
    checkpoints = dict[int, str]()
    began = proof.clock()

    def follow() -> bool:
        """Read new items of all partitions into `seen_events`; return whether all written events are there."""
        partitions = [entry.partition for entry in proof.store.feed.partitions()]
        for partition in partitions:
            start = checkpoints.get(partition, str(proof.starts.get(partition, BEGINNING)))
            items, checkpoints[partition] = read(proof, partition, start)
            for stream, entry in items:
                seen_events.setdefault(stream.removeprefix(TAG_STREAMS), []).append(entry)
        return all(len(seen_events[stream]) >= len(numbers) for stream, numbers in proof.written.items())

    proof.until(follow, FEED_SECONDS)
    took = proof.clock() - began
    follow()  # once more: a duplicate may come later
    wrong = {
        stream: differs(proof.written.get(stream, ()), seen_numbers)
        for stream, seen_numbers in seen_events.items()
    }
    if differences := [f"{stream}: {what}" for stream, what in wrong.items() if what]:
        raise Broken("; ".join(differences))
    return f"{sum(map(len, seen_events.values()))} events of {len(seen_events)} streams, after {took:.1f} s"


def feed_by_library(proof: ProofRun, partition: int, start: str) -> tuple[list[tuple[str, int]], str]:
    """Read a partition to its tail by the library; return the proof's events and the next checkpoint.

    The credentials are the caller's own.
    """
    numbers, checkpoint, at_tail = list[tuple[str, int]](), parse_checkpoint(start), False
    while not at_tail:
        page = proof.store.feed.page(
            partition, start=checkpoint, data=True, predicate=lambda span: proof.marker in span.stream
        )
        numbers += [(item.stream, item.event.json()["n"]) for item in page.items if item.event is not None]
        checkpoint, at_tail = page.next, page.at_tail
    return numbers, str(checkpoint)


def feed_over_http(proof: ProofRun, partition: int, start: str) -> tuple[list[tuple[str, int]], str]:
    """Read a partition to its tail over HTTP; return the proof's events and the next checkpoint.

    The function `feed` serves the requests.

    Raises:
        Broken: a request fails.
    """
    numbers, at_tail = list[tuple[str, int]](), False
    categories = (CATEGORY, f"{TAG_STREAMS}{CATEGORY}") if source_of(partition) == "pages" else (CATEGORY,)
    while not at_tail:
        # The signature covers the query as it is encoded.
        query = urlencode(
            [("from", start), ("data", "true"), *(("category", category) for category in categories)]
        )
        answer = proof.call("GET", f"/feed/{partition}?{query}")
        if answer.status != HTTPStatus.OK:
            raise Broken(f"GET /feed/{partition} returned {answer}")
        items = [item for item in answer.json["items"] if proof.marker in item["stream"]]
        numbers += [(item["stream"], item["data"]["n"]) for item in items if "data" in item]
        start, at_tail = answer.json["next"], answer.json["atTail"]
    return numbers, start


@trial(
    "a signed link uploads exactly the signed body, once: other bytes, other conditions and other callers "
    "are refused, and so is a claim of a missing upload",
    dollars=0.0005,
)
def uploads(proof: ProofRun) -> str:
    """Upload and claim a body; raise `Broken` unless unsigned, altered and repeated requests are refused."""
    unsigned = proof.call("GET", "/health", signed=False)
    if unsigned.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise Broken(f"a request to the API without a signature returned {unsigned}")
    _streams(proof)
    body, other = (os.urandom(UPLOAD) for _ in range(2))
    url, headers, claim = _signed(proof, body)
    without = {name: value for name, value in headers.items() if name != "if-none-match"}
    bare = url.partition("?")[0]
    tries: tuple[tuple[str, str, Mapping[str, str], bytes, Sequence[int]], ...] = (
        ("other bytes of the same length", url, headers, other, (400, 403, 412)),
        ("a missing condition", url, without, body, (403,)),
        ("no signature", bare, headers, body, (403,)),
        ("the upload", url, headers, body, (200,)),
        ("the same upload again", url, headers, body, (412,)),
    )
    let = list[str]()
    for what, where, with_, content, expected in tries:
        answer = proof.call("PUT", where, content, headers=with_)
        if answer.status not in expected:
            let.append(f"{what}: returned {answer.status}, not {' or '.join(map(str, expected))}")
    let += _claims(proof, claim, body)
    if let:
        raise Broken("; ".join(let))
    return f"{UPLOAD:,} bytes; refused: other bytes, another condition, no signature, a second time, a missing body"


def _signed(proof: ProofRun, body: bytes) -> tuple[str, Mapping[str, str], Mapping[str, Any]]:
    """Ask the API to sign an upload of a body: return the URL, the headers and the claim.

    Raises:
        Broken: the API refuses.
    """
    request = {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
    answer = proof.call("POST", "/bodies", request)
    if answer.status != HTTPStatus.CREATED:
        raise Broken(f"POST /bodies returned {answer}")
    return answer.json["url"], answer.json["headers"], answer.json["claim"]


def _claims(proof: ProofRun, claim: Mapping[str, Any], body: bytes) -> Iterator[str]:
    """Append events that claim an uploaded and a missing body, and yield in words what went wrong."""
    stream = proof.name("upload")
    path = f"/streams/{stream}"
    missing = _signed(proof, os.urandom(16))[2]
    refused = proof.call("POST", f"{path}/events", {"events": [{"type": "Uploaded", "claim": missing}]})
    if not HTTPStatus.BAD_REQUEST <= refused.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        yield f"a claim of a body that was never uploaded returned {refused}"
    answer = proof.call("POST", f"{path}/events", {"events": [{"type": "Uploaded", "claim": claim}]})
    if answer.status != HTTPStatus.CREATED:
        yield f"the claim returned {answer}"
        return
    proof.removals.append(StreamWriter("", stream, proof.store.streams).remove)
    proof.left.append(f"an object of {len(body):,} bytes in the bucket, to which nothing refers any more")
    (event,) = proof.store.streams.read(stream)
    if event.content != body:
        yield "the uploaded body is read back with other content"


@trial(f"a reaction catches up over {HOPS} invocations, each of which wakes the next", dollars=0.01)
def catch_up(proof: ProofRun) -> str:
    """Append events for twenty invocations of the reaction `proof`; raise `Broken` unless it catches up.

    The events come in one append, so that each invocation is woken by the one before.

    Raises:
        Broken: the feed lacks the events, or the reaction does not catch up.
        Unproven: the stage has no such reaction.
    """
    functions = functions_of(proof.stacks, proof.client)
    timeouts = [
        float(function.deployed["Timeout"]) for function in functions if function.reaction == REACTION
    ]
    if not timeouts:
        raise Unproven(f"the stage has no reaction called {REACTION}: docs/first-day.md shows it")
    writer = stream_writer(proof, "catch-up")
    begins = ends_of_feed(proof)
    work = timeouts[0] * (1 - SPARED)
    events = [
        Event.json("Slow", {"n": number, "seconds": round(work / EVENTS_A_HOP, 3)})
        for number in range((HOPS + 2) * EVENTS_A_HOP)  # an invocation may end an event later than it should
    ]
    writer.store.append(writer.stream, events)
    proof.removals.append(writer.remove)
    proof.used["seconds of functions"] += round(HOPS * timeouts[0])
    places: list[FeedPlace] = []

    def indexed() -> bool:
        """Whether the appended events are in the feed; `places` gets the place after them."""
        if place := find_place(proof, writer.stream, begins):
            places.append(place)
        return bool(places)

    def caught_up() -> bool:
        """Whether the reaction's checkpoint has reached the place of the events."""
        return has_reached(proof, REACTION, places[0])

    if not proof.until(indexed, FEED_SECONDS):
        raise Broken("the appended events have not reached the feed")
    began = proof.clock()
    if not proof.until(caught_up, 1.5 * HOPS * timeouts[0] + FEED_SECONDS, every=1.0):
        raise Broken(
            f"not caught up after {proof.clock() - began:.0f} s: without RecursiveLoop: Allow on the "
            "function, Lambda stops chains of about 16 calls as a loop; or the reaction has parked the "
            "stream (`epochal parked list`)"
        )
    return f"{len(events)} events, {HOPS} invocations or more, in {proof.clock() - began:.0f} s"


@trial(
    "a process takes an input, calls a function, receives its answer and ends, each once and in order",
    dollars=0.0001,
)
def process(proof: ProofRun) -> str:
    """Append an input for the stage's process; raise `Broken` unless it ends with the expected events.

    Raises:
        Broken: the process does not end, or the events differ.
        Unproven: the stage has no such process.
    """
    if all(function.reaction != f"{PROCESS}-outbox" for function in functions_of(proof.stacks, proof.client)):
        raise Unproven(f"the stage has no process called {PROCESS}: docs/first-day.md shows it")
    writer = stream_writer(proof, "process")
    own = StreamWriter("", f"{PROCESS}-{writer.stream.partition('-')[2]}", writer.store)
    began = proof.clock()
    writer.store.append(writer.stream, [Event.json("Asked", {"n": 0})])
    proof.removals += [writer.remove, own.remove]

    def types(writer: StreamWriter) -> list[str]:
        return [event.type for event in writer.store.read(writer.stream)]

    def ended() -> bool:
        return types(own)[-2:] == ["$done", "$performed"]

    if not proof.until(ended, FEED_SECONDS):
        raise Broken(
            f"the process has not ended: check its alarms, and `epochal parked list {PROCESS}-outbox`"
        )
    if types(writer) != ["Asked", "Answered"] or types(own) != PERFORMED:
        raise Broken(
            f"the stream of the process has {', '.join(types(own))}, and that of its input has "
            f"{', '.join(types(writer))}"
        )
    return f"took an input and ended in {proof.clock() - began:.1f} s"


@trial(
    "a timer fires once, and not early; a cancelled timer does not fire; a timer far in the future has a "
    "schedule",
    dollars=0.0001,
)
def timers(proof: ProofRun) -> str:
    """Set three timers, cancel two; raise `Broken` unless the third fires once, and not before it is due.

    The far timer must have a schedule before it is cancelled; that schedule ends by itself.
    """
    writer = stream_writer(proof, "timers")
    soon = after(seconds=TIMER_SECONDS)
    set_ = [later(name, [Event.json(KIND, {"n": 0})], at=soon) for name in ("fires", "does-not")]
    far = later("far", [Event.json(KIND, {"n": 1})], at=after(minutes=FAR_MINUTES))
    writer.store.append(writer.stream, [*set_, far])
    proof.removals.append(writer.remove)
    writer.store.append(writer.stream, [cancel("does-not")])
    due, _, last = (timer_of(event).ticks for event in islice(writer.store.read(writer.stream), 3))

    def fired() -> list[Recorded]:
        return [event for event in writer.store.read(writer.stream) if event.type == TIMER_FIRED]

    if not proof.until(lambda: bool(fired()), TIMER_SECONDS + FEED_SECONDS):
        raise Broken("the timer has not fired: check the alarms of timers, and `epochal timers due`")
    groups = [
        group
        for event in functions_of(proof.stacks, proof.client)
        for group in Settings.from_environment(event.environment).timers_schedules[:1]
    ]
    slot = Wake.of_slot(Armed(due=last, layout=NATIVE, stream=writer.stream, place=2))
    for group in groups:
        if not proof.until(partial(_is_scheduled, proof, group, slot.name), FEED_SECONDS):
            raise Broken(f"the timer far in the future has no schedule {slot.name} in the group {group}")
    writer.store.append(writer.stream, [cancel("far")])
    proof.sleep(TIMER_SECONDS)
    (*others, one), fired_events = (
        fired(),
        [event for event in writer.store.read(writer.stream) if event.type == KIND],
    )
    late = (parse_time(one.timestamp) - due) / PER_SECOND
    if others or len(fired_events) != 1 or late < 0:
        raise Broken(
            f"{len(others) + 1} timers fired and {len(fired_events)} events were appended, the last "
            f"{late:.1f} s after its due time"
        )
    scheduled = f", and {slot.name} is scheduled" if groups else ""
    return f"fired {late:.1f} s after its due time{scheduled}"


def _is_scheduled(proof: ProofRun, group: str, name: str) -> bool:
    """Return whether EventBridge Scheduler has a schedule of this name in the group."""
    try:
        with translate_errors("GetSchedule"):
            proof.client("scheduler").get_schedule(Name=name, GroupName=group)
    except InvalidRequest as error:
        if error.code != "ResourceNotFoundException":
            raise
        return False
    return True


@trial("an unreadable head is set aside with its cause, and listed", dollars=0.0005)
def quarantine(proof: ProofRun) -> str:
    """Write an item that only looks like a head; raise `Broken` unless it is set aside; remove it again.

    This is the last check, since it sets off the alarm `feed-set-aside`, as it should.
    """
    table, bad = _streams(proof).table, proof.name("quarantine")
    key = {"p": text(bad), "i": number(0)}
    proof.store.driver.ask(Put(table=table, item={**key, "n": text("no number"), "r": number(0)}))
    try:
        records = PoisonRecords(indexer=proof.store.indexer)
        waiting: list[PoisonRecord] = []

        def set_aside() -> bool:
            waiting[:] = [record for record in records.waiting() if record.image.get("p") == text(bad)]
            return bool(waiting)

        if not proof.until(set_aside, FEED_SECONDS):
            raise Broken(
                "the unreadable head is not among the records set aside (`epochal index poison list`)"
            )
    finally:
        proof.store.driver.ask(Delete(table=table, key=key))
    (record,) = waiting
    records.discard(record.source, record.index)
    proof.left.append(f"record {record.index} of {record.source} in quarantine, discarded")
    return f"{record.source} {record.index}: {record.cause}"


def stream_writer(proof: ProofRun, what: str) -> StreamWriter:
    """Return a writer of a new stream of this proof through the library.

    Raises:
        Unproven: the stage has no table of streams.
    """
    return StreamWriter("", proof.name(what), _streams(proof))


def _streams(proof: ProofRun) -> Streams:
    """Return the store's streams; raise `Unproven` if the stage has no table of streams.

    Raises:
        Unproven: the stage has no table of streams.
    """
    if not proof.store.streams.table:
        raise Unproven("the stage has no table of streams")
    return proof.store.streams

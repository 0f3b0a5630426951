"""A process whose codec seals keeps nothing of a person in plain text, and forgets the person with the rest."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest

from epochal import later
from epochal.contrib.processes import (
    Append,
    Call,
    CommandRefused,
    Output,
    Process,
    Send,
    Target,
    process,
)
from epochal.contrib.processes.process import Instance, process_of
from epochal.contrib.subjects.sealing import Shredded, Subjects, sealed_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.deciders.codecs import EventCodec, Stored, json_codec
from epochal.deciders.on_streams import Decider
from epochal.deciders.upcasting import Upcast, upcast
from epochal.errors import CorruptData
from epochal.layout.tables import READ_MODELS, store_tables
from epochal.reactions.definition import Delivery, reaction
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.scheduling import after
from epochal.testing.feeds import MemoryStore

PAGES = 30_000
"""The partition of the streams in pages."""

ADA, BEN = "Ada Lovelace", "Ben Jonson"


@dataclass(frozen=True)
class Enrolled:
    person: str
    name: str


@dataclass(frozen=True)
class Insured:
    person: str
    name: str


@dataclass(frozen=True)
class Insure:
    person: str
    name: str


@dataclass(frozen=True)
class Written:
    person: str
    name: str


@dataclass(frozen=True)
class Closed:
    reason: str


@dataclass(frozen=True)
class Opened:
    name: str


Message = Opened | Enrolled | Insured | Insure | Written | Closed


KINDS: tuple[type[Any], ...] = (Opened, Enrolled, Insured, Insure, Written, Closed)


class Uninsurable(Exception):
    """The insurer's no, which quotes the person's name."""


def insure(command: Insure, _: int) -> list[Insured]:
    raise Uninsurable(f"{command.name} is too old")


@dataclass(frozen=True)
class Enrolment:
    """The state: names in plain text, as any program would keep them."""

    names: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    def evolve(self, event: Message | CommandRefused) -> Enrolment:
        match event:
            case Closed(reason="evolve"):
                raise RuntimeError(f"{self.names} cannot be closed")
            case CommandRefused(text=text):
                return replace(self, refusals=(*self.refusals, text))
            case Opened(name=name) | Enrolled(name=name) | Written(name=name):
                return replace(self, names=(*self.names, name))
        return self

    def react(self, event: Message | CommandRefused) -> Iterable[Output]:
        match event:
            case Closed(reason="react"):
                raise RuntimeError(f"{self.names} cannot be closed")
            case Closed(reason="target"):
                yield Call("letters", event)
            case Enrolled(person=person, name=name):
                yield Send("Insurer", Insure(person, name))
                yield Call("letters", Written(person, name))
                yield Append("Person", [Written(person, name)])
                yield later("Written", [Written(person, name)], at=after(days=1))


@dataclass
class World:
    """A feed, keys of persons, and the process."""

    feed: MemoryStore = field(default_factory=MemoryStore)
    subjects: Subjects = field(default_factory=memory_subjects)
    letters: list[Any] = field(default_factory=list)
    answer: str | None = "(forgotten)"
    fails: bool = False
    keeping: bool = False

    @property
    def codec(self) -> EventCodec[Message]:
        def shredded(stored: Stored, gone: Shredded) -> Message | None:
            if self.answer is None:
                return None
            kind = next(kind for kind in KINDS if kind.__name__ == stored.type)
            message: Message = kind(gone.subject, self.answer)
            return message

        return sealed_codec(
            json_codec(*KINDS),
            self.subjects,
            subject_of=lambda event: getattr(event, "person", None),
            shredded=shredded,
        )

    @property
    def process(self) -> Process:
        insurer = Target(
            decider=Decider[Insure, int, Insured](initial=int, evolve=lambda paid, _: paid, decide=insure),
            codec=json_codec(Insured),
            refusals=(Uninsurable,),
        )
        made = process_of(
            process(
                name="enrolment",
                categories=["Person"],
                codec=self.codec.keeping() if self.keeping else self.codec,
                begins=[Opened, Enrolled],
                targets={"Insurer": insurer, "letters": self.write},
                attempts=1,
            )(Enrolment)
        )
        assert made is not None
        return made

    def write(self, message: Any, _key: str) -> None:
        if message == Closed("target"):
            raise RuntimeError(f"no letter after {self.letters}")
        if self.fails:
            raise OSError(f"no letterbox of {message.name}")
        self.letters.append(message)

    def append(self, stream: str, *events: Message) -> None:
        self.feed.streams.append(stream, [self.codec.encode(event) for event in events])

    def run(self) -> None:
        self.feed.react(self.process)

    def instance(self, key: str = "1") -> Instance:
        return self.process.instances(self.feed.streams).query(f"enrolment-{key}", lambda instance: instance)

    def unfold(self, key: str = "1") -> dict[str, Any]:
        state = self.feed.streams.load(f"enrolment-{key}")
        assert state is not None
        (unfold,) = state.unfolds
        body: dict[str, Any] = json.loads(unfold.content)
        return body

    def stored(self) -> str:
        """All that is stored anywhere: items as they are, and what frames hold."""
        kinds = [spec.kind for spec in (*store_tables(), READ_MODELS)]
        texts = [repr(item) for kind in kinds for item in self.feed.tables.items(kind)]
        streams = {entry.stream for entry in self.feed.feed.streams_by_name().streams}
        for stream in sorted(streams):
            state = self.feed.streams.load(stream, start=0)
            assert state is not None
            texts += [unfold.content.decode() for unfold in state.unfolds]
            texts += [f"{event.content!r} {event.meta!r}" for event in self.feed.streams.read(stream)]
        for half in self.process.reactions(self.feed.streams):
            parking = Parking(reactor=Reactor(member=Member(reaction=half, reader=self.feed.feed)))
            for place in self.feed.feed.partitions():
                texts += [repr(parked) for parked in parking.streams(place.partition)]
        return "\n".join(texts)


def enrolled(**settings: Any) -> World:
    world = World(**settings)
    world.append("Person-1", Enrolled("ada", ADA))
    world.run()
    return world


def test_an_instance_keeps_the_names_of_sealed_inputs_sealed() -> None:
    world = enrolled()
    assert world.instance().state == Enrolment((ADA, ADA), (f"{ADA} is too old",))
    assert ADA not in world.stored()


def test_an_instance_whose_codec_keeps_unknown_types_seals_its_state_as_well() -> None:
    world = enrolled(keeping=True)
    assert world.instance().state == Enrolment((ADA, ADA), (f"{ADA} is too old",))
    assert ADA not in world.stored()


def test_the_words_of_a_refusal_are_sealed_in_the_refusal_and_in_the_input() -> None:
    world = enrolled()
    types = [event.type for event in world.feed.streams.read("enrolment-1")]
    assert types.count("$refused") == 1
    assert "is too old" not in world.stored()
    assert world.instance().state.refusals == (f"{ADA} is too old",)


def test_after_forgetting_nobody_can_read_the_person_in_the_instance() -> None:
    world = enrolled()
    world.subjects.forget("ada")
    state = world.instance().state
    assert state == Enrolment(("(forgotten)", "(forgotten)"), ("",))


def test_the_persons_that_answer_with_nothing_are_left_out_of_a_state_that_is_folded_again() -> None:
    world = enrolled(answer=None)
    world.subjects.forget("ada")
    assert world.instance().state == Enrolment((), ("",))


def test_outputs_that_wait_for_a_forgotten_person_are_dropped_or_have_what_stands_for_the_person() -> None:
    for answer, letters in (None, []), ("(forgotten)", ["(forgotten)"]):
        world = enrolled(fails=True, answer=answer)
        assert world.letters == []
        world.subjects.forget("ada")
        world.fails = False
        (_, outbox) = world.process.reactions(world.feed.streams)
        assert world.feed.parking(outbox).replay(PAGES, "enrolment-1", seconds=60).unparked
        assert [letter.name for letter in world.letters] == letters
        world.run()
        assert world.instance().performed > 3, "later outputs are performed"


def test_an_instance_of_two_persons_forgets_each_of_them() -> None:
    world = enrolled()
    world.append("Person-1", Enrolled("ben", BEN))
    world.run()
    assert world.instance().state.names == (ADA, ADA, BEN, BEN)
    world.subjects.forget("ben")
    assert world.instance().state.names == (ADA, ADA, "(forgotten)", "(forgotten)")
    world.append("Person-1", Closed("moved"))
    world.run()
    assert ADA not in world.stored()
    assert world.instance().state.names == (ADA, ADA, "(forgotten)", "(forgotten)")
    world.subjects.forget("ada")
    assert ADA not in world.instance().state.names


def test_an_instance_of_many_persons_stores_no_state_and_folds_it_again() -> None:
    world = World()
    for number in range(6):
        world.append("Person-1", Enrolled(f"p{number}", f"name {number}"))
    world.run()
    assert world.unfold()["state"] is None
    assert set(world.instance().state.names) == {f"name {number}" for number in range(6)}


def test_an_instance_of_nobody_keeps_its_state_as_it_is() -> None:
    world = World()
    world.append("Person-1", Opened("nobody"))
    world.run()
    assert world.unfold()["state"]["names"] == ["nobody"]
    assert "subjects" not in world.unfold()


def test_what_a_target_raises_about_a_sealed_message_is_stored_without_its_words() -> None:
    world = enrolled(fails=True)
    assert ADA not in world.stored()
    assert "OSError" in world.stored()


@pytest.mark.parametrize("fails_in", ["react", "evolve", "target"])
def test_what_an_open_input_fails_with_is_stored_without_its_words_where_the_state_is_sealed(
    fails_in: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The input has no person, and what it fails with quotes the state, which has."""
    caplog.set_level("DEBUG")
    world = enrolled()
    world.append("Person-1", Closed(fails_in))
    world.run()
    assert "RuntimeError" in world.stored()
    assert ADA not in f"{world.stored()} {caplog.text}"


def test_a_reaction_that_fails_on_a_sealed_event_logs_and_stores_no_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()

    @reaction(name="greeting", categories=["Person"], attempts=2)
    def greet(delivery: Delivery) -> None:
        for event in delivery.events:
            body = world.subjects.unseal(event.content)
            raise ValueError(f"no greeting for {body!r}")

    caplog.set_level("DEBUG")
    world.append("Person-1", Enrolled("ada", ADA))
    world.feed.react(greet)
    (parked,) = world.feed.parking(greet).streams(partition=PAGES)
    assert parked.cause is not None
    assert parked.cause.text.startswith("ValueError")
    assert ADA not in f"{parked.cause} {caplog.text}"


def test_a_reaction_that_fails_on_an_open_event_stores_its_words() -> None:
    world = World()

    @reaction(name="greeting", categories=["Person"], attempts=1)
    def greet(delivery: Delivery) -> None:
        raise ValueError(f"no greeting for {delivery.stream}")

    world.append("Person-1", Closed("moved"))
    world.feed.react(greet)
    (parked,) = world.feed.parking(greet).streams(partition=PAGES)
    assert parked.cause is not None
    assert parked.cause.text == "ValueError: no greeting for Person-1"


def test_a_reaction_that_says_it_is_sealed_keeps_no_words_about_an_open_event_or_a_removal_either(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world, removals = World(), list[str]()

    def part(delivery: Delivery) -> None:
        assert delivery.removal is not None
        removals.append(delivery.removal.kind)
        raise ValueError(f"no parting from {ADA}, whom it remembers")

    @reaction(name="greeting", categories=["Person"], attempts=2, sealed=True, removed=part)
    def greet(delivery: Delivery) -> None:
        if delivery.stream == "Person-1":
            raise ValueError(f"no greeting for {ADA}, whom it remembers")

    caplog.set_level("DEBUG")
    for stream in ("Person-1", "Person-2"):
        world.append(stream, Closed("moved"))
    world.feed.react(greet)
    world.feed.streams.delete("Person-2")
    world.feed.react(greet)
    parked = [*world.feed.parking(greet).streams(partition=PAGES)]
    assert removals
    assert [(one.stream, one.cause and one.cause.text.partition(":")[0]) for one in parked] == [
        ("Person-1", "ValueError"),
        ("Person-2", "ValueError"),
    ]
    assert ADA not in f"{parked} {caplog.text}"


@dataclass(frozen=True)
class Born:
    person: str
    at: datetime
    numbers: dict[str, int]


@pytest.mark.parametrize(
    "body",
    [
        b'{"person":"ada","at":"Lovelace, 1815","numbers":{}}',
        b'{"person":"ada","at":"2026-01-01T00:00:00Z","numbers":{"Lovelace":"x"}}',
        b'{"person":"ada","at":1815,"numbers":{}}',
        b'{"person":"ada","at":"2026-01-01T00:00:00Z","numbers":"Lovelace"}',
        b'{"Lovelace":"Lovelace"}',
        b"Ada Lovelace",
        b'["Lovelace"',
    ],
)
@pytest.mark.parametrize("upcasts", [(), (upcast("Born", 1, to=2)(lambda body: body["Lovelace"]),)])
def test_an_error_about_a_sealed_body_quotes_nothing_of_it(body: bytes, upcasts: tuple[Upcast, ...]) -> None:
    subjects = memory_subjects()
    codec = sealed_codec(
        json_codec(Born, upcasts=upcasts),
        subjects,
        subject_of=lambda event: event.person,
        shredded=lambda _stored, _gone: None,
    )
    stored = Stored(type="Born", data=subjects.seal("ada", body), stream="Person-1")
    with pytest.raises(CorruptData) as refused:
        codec.decode(stored)
    shown = "".join(traceback.format_exception(refused.value))
    assert not re.search("Lovelace|1815", shown.replace('body["Lovelace"]', ""))
    assert "Person-1: Born (index 0)" in str(refused.value)

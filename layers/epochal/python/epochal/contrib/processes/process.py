"""A process: a class whose fields are the state of an instance, and two functions.

    @process(name="checkout", categories=["Order", "Payment"], codec=codec, targets={"Payment": payments})
    @dataclass(frozen=True)
    class Checkout:
        def evolve(self, event): ...    # the state after one more input
        def react(self, event): ...     # what is done about it: outputs, decided on that state

An instance is a stream, `checkout-17`, and so its own inbox and outbox. An input that it has not had is one append, on
the state that it was decided on:

    $input ──► its outputs, its timers, in order        one conditional write, with the state as an unfold

Which inputs an instance has had is part of its state: of each stream, the index that it goes on from. So an input that
comes again is passed, however late it comes, and nothing depends on keys that expire. Whatever else is appended to the
stream is an input, too: what a timer brings, a refusal, the answer of a function, a message of somebody else's.

A stream may be copied to another layout, under its name and with its indices. So what was had of one layout counts for
all, but for sources that the inbox has found to have other events.

`evolve` has inputs alone: outputs follow from them. The state is folded again from copies of inputs where its unfold
is gone, so it outlives the streams that they came from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Literal, Protocol, TypeVar

from epochal.contrib.processes.outputs import (
    HOME,
    INPUT,
    PERFORMS,
    REFUSED,
    After,
    Cancel,
    CommandRefused,
    Done,
    Inbox,
    Outbox,
    Output,
    Target,
    message_in,
    record,
    stored,
    timer_of,
    told_by,
)
from epochal.contrib.processes.sealed_state import seal, subjects_in, unseal
from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.fingerprints import fingerprint_of
from epochal.deciders.folding import snapshot
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.shapes import ValueForm, form_of
from epochal.deciders.snapshot_marks import OTHER_SHAPE, warn_once
from epochal.errors import InvalidInput
from epochal.index.checkpoints import Moment
from epochal.layout.port import layout_names
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Event
from epochal.model.kinds import (
    must_be,
    must_be_done,
    must_be_events,
    must_be_names,
    must_be_plain,
    must_be_state,
    must_be_whole,
)
from epochal.reactions.composite import MARK, Composite, OnPassed, composite_of
from epochal.reactions.reaction import Reaction, code_name
from epochal.scheduling import call_off, event_record
from epochal.store.streams import Streams

NAME: Final = re.compile(r"[A-Za-z0-9]{1,56}", re.ASCII)
"""A process's name is the category of its streams, and the beginning of its groups' names."""

STATE: Final = "$process"
"""The unfold that is an instance."""

Passed = Literal["again", "copy", "late", "unknown", "gone"]
"""Why an input is passed: the instance has had it; it has had it from another layout; it is done; it has not begun, and
this begins none, or began with a version that does not know it; the event was pruned, or has expired, before it came.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance of a process.

    Attributes:
        version: of the process, that it began with; 0 where there is no instance.
        state: of the user's class.
        had: by sources and streams of inputs, the index that it goes on from.
        timers: that were set and not cancelled. They may have fired: an input of such a type may be anybody's, or of a
            timer that has been set anew since.
        performed: outputs below this index have been performed.
        done: it takes no more inputs.
        subjects: persons for whom any of its inputs is sealed.
    """

    version: int = 0
    state: Any = None
    had: Mapping[str, int] = field(default_factory=dict)
    timers: frozenset[str] = frozenset()
    performed: int = 0
    done: bool = False
    subjects: frozenset[str] = frozenset()


def id_in(stream: str, _event: object) -> str | None:
    """The id of a stream: `17` of `Order-17`."""
    return stream.partition("-")[2] or None


# No slots: what is derived is kept.
@dataclass(frozen=True, kw_only=True)
class Process(Composite):
    """A process: `process` makes one of a class, and this of functions.

    Attributes:
        name: the category of its instances' streams.
        categories: of streams whose events are inputs.
        codec: of inputs, and of all messages in outputs.
        state: the class of states: what `json_codec` takes. An instance begins with `state()`.
        evolve: the state after one more input.
        react: outputs, on the state that has the input.
        key: which instance an event of a stream is for, None for none; the id of the stream where it is not given.
        begins: classes of inputs that an instance may begin with; None for all.
        targets: of outputs, by names: a `Target` for commands, a function for calls, what sends for messages.
        version: raised where instances that have begun are to end by the rules that they began with.
        before: the process of the version before, for those instances.
        sources: layouts that inputs come from; its instances' own streams are pages.
        start: where it begins in the feed.
        members, attempts: of its reactions.
    """

    name: str
    categories: frozenset[str]
    codec: EventCodec[Any]
    state: type
    evolve: Callable[[Any, Any], Any]
    react: Callable[[Any, Any], Iterable[Output]]
    key: Callable[[str, Any], str | None] = id_in
    begins: frozenset[type] | None = None
    targets: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    before: Process | None = None
    sources: frozenset[str] = field(default_factory=lambda: frozenset(layout_names()))
    start: Literal["beginning", "tail"] | Moment = "beginning"
    members: int = 1
    attempts: int = 5

    def __post_init__(self) -> None:
        """Refuse what could not be kept."""
        if not NAME.fullmatch(self.name):
            raise InvalidInput("name", "must be 1 to 56 letters and digits: the category of streams")
        if self.name in self.categories:
            raise InvalidInput(
                "categories", "must not have the process's own, whose events are inputs anyway"
            )
        must_be_plain(self.evolve, "evolve")
        must_be_plain(self.react, "react", may_yield=True)
        must_be_plain(self.key, "key")
        must_be(EventCodec, self.codec, "codec", "a codec, as of json_codec(…)")
        must_be(Mapping, self.targets, "targets", "a dict by names")
        for name, target in self.targets.items():
            if not isinstance(target, Target):
                must_be_plain(target, f"targets[{name!r}]")
        for kind in self.begins or ():
            must_be(type, kind, "begins", "a list of classes")
        must_be_whole(self.version, "version", 1)
        if self.before is not None and (self.before.name, self.version) <= (self.name, self.before.version):
            raise InvalidInput("before", "must be of the same name and of a lower version")
        self._form  # noqa: B018  raises where there is none
        try:
            self.state()
        except TypeError as error:
            raise InvalidInput(
                "state", f"must be made without arguments, as an instance begins: {error}"
            ) from None

    @cached_property
    def _form(self) -> ValueForm:
        return form_of(self.state)

    @property
    def seals(self) -> bool:
        """Whether its codec, or that of a target, seals data of persons."""
        targets = (target.codec for target in self.targets.values() if isinstance(target, Target))
        return any(codec.sealing is not None for codec in (self.codec, *targets))

    @cached_property
    def versions(self) -> dict[int, Process]:
        """This one, and those before it."""
        return {self.version: self, **(self.before.versions if self.before else {})}

    def of(self, version: int) -> Process:
        """The rules that an instance goes by."""
        if version not in self.versions:
            rule = f"must lead to version {version} of {self.name}, which instances began with"
            raise InvalidInput("before", rule)
        return self.versions[version]

    def message(self, stored: Stored) -> Any:
        """An input as `evolve` and `react` get it; None for one of an unknown type."""
        if stored.type != REFUSED:
            return self.codec.decode(stored)
        told = told_by(stored)
        read = [self.codec.decode(message_in(each)) for each in told.get("events", [told])]
        refused = tuple(read) if "events" in told else read[0]
        return CommandRefused(refused, told["error"], self._words(told), told["to"])

    def code_names(self) -> frozenset[str]:
        """Where the code of all its versions is."""
        return frozenset(code_name(rules.react) for rules in self.versions.values())

    def reactions(
        self, streams: Streams, on_passed: OnPassed = lambda _why, _event: None
    ) -> tuple[Reaction, Reaction]:
        """Its inbox and its outbox.

        Args:
            streams: where instances are, and what outputs are appended to.
            on_passed: called with each input that is passed, and why.
        """
        known = [rules.codec.types for rules in self.versions.values()]
        types = frozenset({REFUSED}.union(*known)) if all(known) else None
        # An input of nobody's meets a state with the data of persons, which an error about it may quote.
        sealed = any(rules.seals for rules in self.versions.values())
        inbox = Reaction(
            name=f"{self.name}-inbox",
            handler=Inbox(self, streams, on_passed),
            categories=frozenset({self.name}).union(*(rules.categories for rules in self.versions.values())),
            types=types,
            early=(types or frozenset()) | {self.name},
            sources=self.sources | {HOME},
            start=self.start,
            members=self.members,
            attempts=self.attempts,
            once=True,
            sealed=sealed,
        )
        outbox = Reaction(
            name=f"{self.name}-outbox",
            handler=Outbox(self, streams),
            categories=frozenset({self.name}),
            types=PERFORMS,
            early=PERFORMS | {self.name},
            members=self.members,
            attempts=self.attempts,
            sealed=sealed,
        )
        return inbox, outbox

    def instance_of(self, given: Stored) -> str | None:
        """The stream of the instance that an event is for, by the newest version that knows it."""
        for rules in self.versions.values():
            if (message := rules.codec.decode(given)) is not None:
                key = must_be_done(rules.key(given.stream, message), "key")
                if key == "":
                    raise InvalidInput("key", "must not be empty: None is for no instance")
                return None if key is None else f"{self.name}-{key}"
        return None

    def instances(self, streams: Streams) -> Deciders[Any, Instance, Any]:
        """The instances in a store."""
        return Deciders(
            streams=streams,
            decider=Decider(initial=Instance, evolve=self.fold, decide=lambda _, __: ()),
            codec=EventCodec(encode=self._encode, decode=self._decode, skips_unknown=True),
            access=snapshot(lambda event: isinstance(event, Instance), lambda instance: instance),
        )

    def fold(self, instance: Instance, event: Event | Stored | Instance) -> Instance:
        """An instance after one more event of its stream: its state changes by inputs that were taken alone."""
        if isinstance(event, Instance):
            return event
        match event.type:
            case "$input":
                return self._taken(instance, told_by(event))
            case "$performed" | "$refused":
                return replace(instance, performed=max(instance.performed, told_by(event)["below"]))
            case "$done":
                return replace(instance, done=True)
            case _:
                return instance

    def take(
        self, stream: str, source: str, given: Stored, instance: Instance, *, apart: Collection[str] = ()
    ) -> tuple[Passed | None, list[Event]]:
        """What the instance of a stream stores for an input from a source, or why it passes it.

        Args:
            apart: sources of other layouts whose stream of this name has other events.
        """
        if given.index < instance.had.get(source, 0):
            return "again", []
        name = source.partition("/")[2]
        if any(
            given.index < below and other not in apart and other.partition("/")[2] == name
            for other, below in instance.had.items()
        ):
            return "copy", []
        if instance.done:
            return "late", []
        rules = self.of(instance.version or self.version)
        message = rules.message(given)
        begins = instance.version or rules.begins is None or type(message) in rules.begins
        if message is None or not begins:
            return "unknown", []
        copy = Event(type=given.type, data=given.data, meta=given.meta, timestamp=given.timestamp or None)
        told = {"of": f"{source}@{given.index}", "version": rules.version, **event_record(copy)}
        state = self.fold(instance, record(INPUT, told)).state
        outputs = list(must_be_events(rules.react(state, message), "react"))
        timers = instance.timers
        for output in outputs:
            if isinstance(output, After):
                timers |= {timer_of(output)}
            elif isinstance(output, Cancel):
                timers -= {timer_of(output)}
        events = [stored(output, stream, rules.codec, rules.targets) for output in outputs]
        if Done() in outputs:
            events += [call_off(name) for name in sorted(timers)]
        return None, [record(INPUT, {**told, "timers": sorted(timers)}), *events]

    def _taken(self, instance: Instance, told: Mapping[str, Any]) -> Instance:
        rules = self.of(instance.version or told["version"])
        source, _, index = told["of"].rpartition("@")
        before = instance.state if instance.version else rules.state()
        message = rules.message(message_in(told, source.partition("/")[2], int(index)))
        # Of a person who is forgotten the codec may have nothing: then the input is no part of the state.
        state = (
            before
            if message is None
            else must_be_state(rules.evolve(before, message), before, rules.state, message)
        )
        had = {**instance.had, source: int(index) + 1}
        timers = frozenset(told.get("timers", ()))
        subjects = instance.subjects | subjects_in(told)
        return replace(
            instance, version=rules.version, state=state, had=had, timers=timers, subjects=subjects
        )

    def _words(self, told: Mapping[str, Any]) -> str:
        """The message of a refusal; empty where it was sealed for a person who is forgotten."""
        text, sealing = told["text"], self.codec.sealing
        if isinstance(text, str):
            return text
        opened = None if sealing is None else unseal(sealing, text)
        return "" if opened is None else str(opened["text"])

    def _encode(self, event: Event | Instance) -> Event:
        if isinstance(event, Event):
            return event
        rules = self.of(event.version)
        state = rules._form.write(event.state)  # noqa: SLF001  its own
        told = {name: getattr(event, name) for name in ("version", "had", "performed", "done")}
        told["timers"] = sorted(event.timers)
        if rules.codec.sealing is not None and event.subjects:
            told["subjects"] = sorted(event.subjects)
            state = seal(rules.codec.sealing, event.subjects, state)
        return record(STATE, {**told, "shape": fingerprint_of(rules.state), "state": state})

    def _decode(self, stored: Stored) -> Stored | Instance | None:
        """What is an input, and not taken yet, is no part of a state. Nor is a state whose class has changed since, or
        that is sealed for a person who is forgotten: it is folded again.
        """
        if stored.type != STATE:
            return stored if stored.type.startswith("$") else None
        told = dict(told_by(stored))
        rules = self.of(told["version"])
        if told.pop("shape", None) != fingerprint_of(rules.state):
            warn_once(f"the process {self.name}", OTHER_SHAPE)
            return None
        subjects = frozenset(told.get("subjects", ()))
        state = told["state"]
        if rules.codec.sealing is not None and subjects:
            state = unseal(rules.codec.sealing, state)
        try:
            state = rules._form.read(state)  # noqa: SLF001  its own
        except ValueError:
            return None
        timers = frozenset(told["timers"])
        return Instance(**{**told, "timers": timers, "subjects": subjects, "state": state})


class Rules(Protocol):
    """A class that `process` makes a process of."""

    def evolve(self, event: Any, /) -> Any:
        """The state after one more input."""

    def react(self, event: Any, /) -> Iterable[Output]:
        """What is done about an input, on the state that has it."""


R = TypeVar("R", bound=Rules)

ProcessLike = Process | type[Rules]
"""A process, or a class with the decorator."""


def process_of(found: object) -> Process | None:
    """The process that something is, or that its decorator has made of a class; None for anything else."""
    made = composite_of(found)
    return made if isinstance(made, Process) else None


def process(
    *,
    name: str,
    categories: Collection[str],
    codec: EventCodec[Any],
    key: Callable[[str, Any], str | None] = id_in,
    begins: Collection[type] | None = None,
    targets: Mapping[str, Any] | None = None,
    version: int = 1,
    before: ProcessLike | None = None,
    sources: Collection[str] | None = None,
    start: Literal["beginning", "tail"] | Moment = "beginning",
    members: int = 1,
    attempts: int = 5,
) -> Callable[[type[R]], type[R]]:
    """Make a process of a class of states. The class stays what it is, and is given wherever a reaction is; the
    arguments are the attributes of `Process`.

    Raises:
        InvalidInput: an argument that could not be kept.
        TypeError: a field of the class has no form in JSON.
    """
    must_be_names(categories, "categories")
    must_be_names(() if sources is None else sources, "sources")
    must_be(Collection, () if begins is None else begins, "begins", "a list of classes")

    def made(rules: type[R]) -> type[R]:
        found = Process(
            name=name,
            categories=frozenset(categories),
            codec=codec,
            state=rules,
            evolve=rules.evolve,
            react=rules.react,
            key=key,
            begins=None if begins is None else frozenset(begins),
            targets=targets or {},
            version=version,
            before=process_of(before),
            sources=frozenset(layout_names() if sources is None else sources),
            start=start,
            members=members,
            attempts=attempts,
        )
        setattr(rules, MARK, found)
        return rules

    return made

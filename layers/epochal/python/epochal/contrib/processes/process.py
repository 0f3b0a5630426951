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
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal, Protocol, TypeVar

from epochal.contrib.processes.handlers import HOME, Inbox, Outbox
from epochal.contrib.processes.outputs import (
    INPUT,
    PERFORMS,
    REFUSED,
    CommandRefused,
    Done,
    Output,
    Target,
    message_in,
    record,
    stored,
    timer_of,
    told_by,
)
from epochal.contrib.processes.sealed_state import seal, subjects_in, unseal
from epochal.deciders.access import snapshot
from epochal.deciders.codecs import EventCodec, Stored
from epochal.deciders.fingerprints import fingerprint_of
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.snapshot_marks import OTHER_SHAPE, warn_once
from epochal.deciders.value_forms import ValueForm, form_of
from epochal.errors import InvalidInput
from epochal.index.group_state import MAX_MEMBERS
from epochal.layout.registry import layout_names
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import Event
from epochal.model.kinds import must_be, must_be_names, must_be_whole
from epochal.model.moments import Moment
from epochal.model.plain_functions import must_be_done, must_be_events, must_be_plain, must_be_state
from epochal.model.timers import Later
from epochal.reactions.composite import MARK, Composite, OnPassed, composite_of
from epochal.reactions.definition import Reaction, check_sources, check_start, code_name
from epochal.scheduling import cancel, event_record
from epochal.store.streams import Streams

NAME: Final = re.compile(r"[A-Za-z0-9]{1,56}", re.ASCII)
"""Pattern of a process's name, which is the category of its streams and the beginning of its groups' names."""

STATE: Final = "$process"
"""Type of the unfold that holds an instance."""

Passed = Literal["again", "copy", "late", "unknown", "gone"]
"""The reasons why a process skips an input.

again: the instance has taken the input before
copy: the instance has taken the input from another layout
late: the instance is done
unknown: the instance has not begun and this input begins none, or its version does not know the type
gone: the event was pruned, or expired, before it was delivered
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """State of one instance of a process, as folded from its stream.

    Attributes:
        version: version of the process with which the instance began; 0 if there is no instance.
        state: state of the instance, an object of the user's class.
        had: index of the next event to take from each stream of inputs, by the stream's `layout/stream`.
        timers: names of timers that were set and not cancelled. A timer that has fired stays listed, since an input
            does not prove that it fired: the same event may come from elsewhere, or from a timer that was set earlier.
        performed: index in the instance's stream below which all outputs have been performed.
        done: whether the instance takes no more inputs.
        subjects: persons with whose keys any of the instance's inputs is encrypted.
    """

    version: int = 0
    state: Any = None
    had: Mapping[str, int] = field(default_factory=dict)
    timers: frozenset[str] = frozenset()
    performed: int = 0
    done: bool = False
    subjects: frozenset[str] = frozenset()


def id_in(stream: str, _event: object) -> str | None:
    """Return the id in a stream's name, such as `17` of `Order-17`; None if there is none."""
    return stream.partition("-")[2] or None


# No slots: cached properties need a dict.
@dataclass(frozen=True, kw_only=True)
class Process(Composite):
    """A process: rules that turn inputs into states and outputs, for many instances.

    The decorator `process` makes one of a class; this constructor makes one of functions.

    Attributes:
        name: name of the process, which is the category of its instances' streams.
        categories: categories of streams whose events are inputs.
        codec: codec of inputs, and of all messages in outputs.
        state: class of the states, in a form that `json_codec` accepts. An instance begins with `state()`.
        evolve: function that returns an instance's state after one more input.
        react: function that returns the outputs for an input, from the state that includes the input.
        key: function from a stream and its event to the key of the instance that the event is for, or None for no
            instance. The default is the id of the stream.
        begins: classes of inputs that begin an instance; None for all. Any other input is skipped if there is no
            instance.
        targets: targets of outputs by their names: a `Target` for commands, a function for calls, a sender for
            messages.
        version: version of the rules; raise it when the rules change but instances that have begun should end by the
            rules that they began with.
        before: process of the previous version, by whose rules instances end that began with them.
        sources: names of the layouts whose streams' events are inputs. The instances' own streams have the layout
            `pages`.
        start: where in the feed the process begins to take inputs.
        members: number of members that share the work of each of the process's two reactions.
        attempts: number of calls of a handler for one delivery before the delivery's stream is given up.
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
    start: Moment | datetime | str = "beginning"
    members: int = 1
    attempts: int = 5

    def __post_init__(self) -> None:
        """Raise `InvalidInput` unless the process's attributes are valid."""
        must_be(str, self.name, "name", "text")
        if not NAME.fullmatch(self.name):
            raise InvalidInput(
                "name",
                "must be 1 to 56 letters and digits, because it is the category of the process's streams",
            )
        if self.name in self.categories:
            raise InvalidInput(
                "categories", "must not include the process's own category, whose events are inputs anyway"
            )
        must_be_plain(self.evolve, "evolve")
        must_be_plain(self.react, "react", may_yield=True)
        must_be_plain(self.key, "key")
        must_be(EventCodec, self.codec, "codec", "a codec, such as json_codec(…) makes")
        must_be(Mapping, self.targets, "targets", "a dict by names")
        for name, target in self.targets.items():
            if not isinstance(target, Target):
                must_be_plain(target, f"targets[{name!r}]")
        self._check_begins()
        check_sources(self.sources)
        check_start(self.start)
        must_be_whole(self.members, "members", 1, MAX_MEMBERS)
        must_be_whole(self.attempts, "attempts", 1)
        must_be_whole(self.version, "version", 1)
        if self.before is None and self.version > 1:
            rule = (
                f"must be the process of the version before {self.version}, for instances that began with "
                "that one"
            )
            raise InvalidInput("before", rule)
        if self.before is not None and (self.before.name, self.version) <= (self.name, self.before.version):
            raise InvalidInput("before", "must have the same name and a lower version")
        self._form  # noqa: B018  raises where there is none
        try:
            self.state()
        except TypeError as error:
            raise InvalidInput(
                "state", f"must be callable without arguments, to make the state of a new instance: {error}"
            ) from None

    def _check_begins(self) -> None:
        """Raise `InvalidInput` for classes in `begins` that no input can be of.

        A codec that seals may decode an event as another class, once its person is forgotten.
        """
        kinds = {stored_class.kind for stored_class in self.codec.classes.values()}
        for kind in self.begins or ():
            must_be(type, kind, "begins", "a list of classes")
            if kinds and self.codec.sealing is None and kind not in kinds | {CommandRefused, Stored}:
                raise InvalidInput("begins", f"must contain only classes of the codec, not {kind.__name__}")

    @cached_property
    def _form(self) -> ValueForm:
        """JSON form of the class of states."""
        return form_of(self.state)

    @property
    def seals(self) -> bool:
        """Whether the codec of the process, or of one of its targets, encrypts personal data."""
        targets = (target.codec for target in self.targets.values() if isinstance(target, Target))
        return any(codec.sealing is not None for codec in (self.codec, *targets))

    @cached_property
    def versions(self) -> dict[int, Process]:
        """This process and its previous versions, by their numbers, newest first."""
        return {self.version: self, **(self.before.versions if self.before else {})}

    def of(self, version: int) -> Process:
        """Return the version of the process with the number `version`; raise if there is none.

        Args:
            version: number of the version, 1 or more.

        Raises:
            InvalidInput: the process has no such version.
        """
        if version not in self.versions:
            rule = f"must lead to version {version} of {self.name}, because instances began with it"
            raise InvalidInput("before", rule)
        return self.versions[version]

    def message(self, stored: Stored) -> Any:
        """Decode an input, or a refused command, for `evolve` and `react`; None if its type is unknown.

        The record of a refusal becomes a `CommandRefused`.

        Args:
            stored: input as the instance's stream holds it.
        """
        if stored.type != REFUSED:
            return self.codec.decode(stored)
        message = told_by(stored)
        read = [self.codec.decode(message_in(member)) for member in message.get("events", [message])]
        refused = tuple(read) if "events" in message else read[0]
        return CommandRefused(refused, message["error"], self._words(message), message["to"])

    def code_names(self) -> frozenset[str]:
        """Return dotted names of the code of all versions of the process."""
        return frozenset(code_name(rules.react) for rules in self.versions.values())

    def reactions(
        self, streams: Streams, on_passed: OnPassed = lambda _why, _event: None
    ) -> tuple[Reaction, Reaction]:
        """Make the two reactions that run the process: inbox and outbox.

        Args:
            streams: the store of the instances' streams, to which outputs are appended, too.
            on_passed: called with the reason and the event of each input that is skipped.
        """
        type_sets = [rules.codec.types for rules in self.versions.values()]
        types = frozenset({REFUSED}.union(*type_sets)) if all(type_sets) else None
        # An unsealed input, too, is applied to a state with personal data, which an error may quote.
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
        """Return the stream of the instance that an event is for, or None if it is for no instance.

        The newest version of the process whose codec knows the event's type decides.

        Args:
            given: event that reached the process.

        Raises:
            InvalidInput: the key is empty, or not text.
        """
        for rules in self.versions.values():
            if (message := rules.codec.decode(given)) is not None:
                key = must_be_done(rules.key(given.stream, message), "key")
                if key is None:
                    return None
                must_be(str, key, "key", "text, or None for no instance")
                if key == "":
                    raise InvalidInput("key", "must not be empty: return None for no instance")
                return f"{self.name}-{key}"
        return None

    def instances(self, streams: Streams) -> Deciders[Any, Instance, Any]:
        """Return `Deciders` that load the process's instances from a store of streams.

        Args:
            streams: store of the instances' streams.
        """
        return Deciders(
            streams=streams,
            decider=Decider(initial=Instance, evolve=self.fold, decide=lambda _, __: ()),
            codec=EventCodec(encode=self._encode, decode=self._decode, skips_unknown=True),
            access=snapshot(lambda event: isinstance(event, Instance), lambda instance: instance),
        )

    def fold(self, instance: Instance, event: Event | Stored | Instance) -> Instance:
        """Return an instance after one more event of its stream; only inputs taken change the user's state.

        An event that is an `Instance` itself, from a snapshot, replaces it.

        Args:
            instance: state before the event.
            event: event of the instance's stream, or a snapshot.
        """
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
        """Return the reason to skip an input, and no events; or None, and the events to append for it.

        Args:
            stream: name of the instance's stream.
            source: layout and name of the stream that the input comes from, as `layout/stream`.
            given: the input.
            instance: the instance as it is now.
            apart: sources in other layouts whose stream of this name has other events, and is no copy.
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
        entry = {"of": f"{source}@{given.index}", "version": rules.version, **event_record(copy)}
        state = self.fold(instance, record(INPUT, entry)).state
        outputs = list(must_be_events(rules.react(state, message), "react"))
        timers = instance.timers
        for output in outputs:
            timer = timer_of(output)
            if timer is not None:
                timers = timers | {timer} if isinstance(output, Later) else timers - {timer}
        events = [stored(output, stream, rules.codec, rules.targets) for output in outputs]
        if Done() in outputs:
            events += [cancel(name) for name in sorted(timers)]
        return None, [record(INPUT, {**entry, "timers": sorted(timers)}), *events]

    def _taken(self, instance: Instance, members: Mapping[str, Any]) -> Instance:
        """Return an instance after a recorded input: with the evolved state, and the input noted as taken."""
        rules = self.of(instance.version or members["version"])
        source, _, index = members["of"].rpartition("@")
        before = instance.state if instance.version else rules.state()
        message = rules.message(message_in(members, source.partition("/")[2], int(index)))
        # None if the input's person is forgotten and the codec has no substitute: the state is not changed then.
        state = (
            before
            if message is None
            else must_be_state(rules.evolve(before, message), before, rules.state, message)
        )
        had = {**instance.had, source: int(index) + 1}
        timers = frozenset(members.get("timers", ()))
        subjects = instance.subjects | subjects_in(members)
        return replace(
            instance, version=rules.version, state=state, had=had, timers=timers, subjects=subjects
        )

    def _words(self, members: Mapping[str, Any]) -> str:
        """Return the message of a refusal; empty if it was sealed for a person who is forgotten."""
        text, sealing = members["text"], self.codec.sealing
        if isinstance(text, str):
            return text
        opened = None if sealing is None else unseal(sealing, text)
        return "" if opened is None else str(opened["text"])

    def _encode(self, event: Event | Instance) -> Event:
        """Encode an instance as an unfold, its state sealed for its subjects; return events unchanged."""
        if isinstance(event, Event):
            return event
        rules = self.of(event.version)
        state = rules._form.write(event.state)  # noqa: SLF001  its own
        fields = {name: getattr(event, name) for name in ("version", "had", "performed", "done")}
        fields["timers"] = sorted(event.timers)
        if rules.codec.sealing is not None and event.subjects:
            fields["subjects"] = sorted(event.subjects)
            state = seal(rules.codec.sealing, event.subjects, state)
        return record(STATE, {**fields, "shape": fingerprint_of(rules.state), "state": state})

    def _decode(self, stored: Stored) -> Stored | Instance | None:
        """Decode an event of an instance's stream for `fold`; None if it is no part of the state, or no use.

        Inputs that were appended but not taken yet are no part of it. Nor is a stored state whose class has changed
        since, or that is sealed for a person who is forgotten: the state is then folded again from the inputs.
        """
        if stored.type != STATE:
            return stored if stored.type.startswith("$") else None
        fields = dict(told_by(stored))
        rules = self.of(fields["version"])
        if fields.pop("shape", None) != fingerprint_of(rules.state):
            warn_once(f"the process {self.name}", OTHER_SHAPE)
            return None
        subjects = frozenset(fields.get("subjects", ()))
        state = fields["state"]
        if rules.codec.sealing is not None and subjects:
            state = unseal(rules.codec.sealing, state)
        try:
            state = rules._form.read(state)  # noqa: SLF001  its own
        except ValueError:
            return None
        timers = frozenset(fields["timers"])
        return Instance(**{**fields, "timers": timers, "subjects": subjects, "state": state})


class Rules(Protocol):
    """The methods that a class needs so that `process` can turn it into a process: `evolve` and `react`."""

    def evolve(self, event: Any, /) -> Any:
        """Return the state after one more input.

        Args:
            event: input as the codec decoded it.
        """

    def react(self, event: Any, /) -> Iterable[Output]:
        """Return the outputs for an input, from the state that includes the input.

        Args:
            event: input as the codec decoded it.
        """


R = TypeVar("R", bound=Rules)

ProcessLike = Process | type[Rules]
"""A process, or a class that the decorator `process` has turned into one."""


def process_of(found: object) -> Process | None:
    """Return the process that an object is, or that `process` made of a class; None for anything else.

    Args:
        found: a process, a class that `process` decorates, or anything else.
    """
    composite = composite_of(found)
    return composite if isinstance(composite, Process) else None


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
    start: Moment | datetime | str = "beginning",
    members: int = 1,
    attempts: int = 5,
) -> Callable[[type[R]], type[R]]:
    """Declare a class as a process manager: it answers events with commands, calls and timers.

    `process(...)` is the decorator of the class. An instance of the class is the state of one running process, such as
    one order; its method `evolve` applies an event to the state, and `react` returns what is to be done. The class
    itself does not change, and is accepted wherever a reaction is. The arguments are the attributes of `Process`.

    Args:
        name: category of the instances' streams.
        categories: categories of streams whose events are inputs.
        codec: codec of inputs, and of all messages in outputs.
        key: function from a stream and its event to the key of the instance that the event is for, or None for no
            instance. The default is the id of the stream.
        begins: classes of inputs that an instance may begin with; None for all.
        targets: targets of outputs by their names.
        version: version of the rules, 1 or more; raised if instances that have begun are to end by the rules they began
            with.
        before: process of the previous version, for those instances.
        sources: layouts from which inputs come; None for all.
        start: where the process begins in the feed.
        members: number of members of each of its reactions, as for `reaction`.
        attempts: number of calls before a stream is given up, as for `reaction`.

    Raises:
        InvalidInput: an argument is not valid.
        TypeError: a field of the class has no form in JSON.
    """
    must_be_names(categories, "categories")
    must_be_names(() if sources is None else sources, "sources")
    must_be(Collection, () if begins is None else begins, "begins", "a list of classes")
    if before is not None and process_of(before) is None:
        raise InvalidInput("before", "must be a class decorated with @process(name=…)")

    def made(rules: type[R]) -> type[R]:
        """Attach the process to the class whose rules these are, and return the class."""
        process_ = Process(
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
        setattr(rules, MARK, process_)
        return rules

    return made

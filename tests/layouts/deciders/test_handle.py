"""`handle` takes a command or a function, and `expected=` also where a decision rests on more than one stream."""

from __future__ import annotations

from typing import Any

import pytest

from epochal import NO_STREAM, AtVersion, ConflictError, Decider, Deciders, Event, InvalidInput, projection
from epochal.deciders import AllowStale, Cache, EventCodec, Party, handle_all
from epochal.model.tokens import Token
from epochal.testing import memory_streams

CODEC = EventCodec[str](
    encode=lambda name: Event(type="Taken", data=name.encode(), tags=("course:dcb",)),
    decode=lambda stored: bytes(stored.data).decode(),
)
DECIDER = Decider[str | None, tuple[str, ...], str](
    initial=tuple, evolve=lambda names, name: (*names, name), decide=lambda name, _: [name] if name else []
)
TAKEN = {"taken": projection(tags=["course:dcb"], initial=0, on={"Taken": lambda taken, _: taken + 1})}


def students(**options: Any) -> Deciders[str | None, tuple[str, ...], str]:
    return Deciders(streams=memory_streams(), decider=DECIDER, codec=CODEC, **options)


def test_none_is_a_command_like_any_other() -> None:
    assert students().handle("Student-1", None).events == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "command: must be given, unless `decide` is given"),
        ({"command": "dcb", "decide": lambda _: []}, "decide: must not be given together with a command"),
        ({"command": "dcb", "with_result": True}, "decide: must be given with `with_result`"),
        ({"command": "dcb", "given": TAKEN}, "decide: must be given with `given`"),
        (
            {"decide": list, "given": TAKEN, "with_result": True, "idempotency_key": "request-1"},
            "with_result: must not be combined with `given` and a key",
        ),
    ],
)
def test_a_call_that_decides_on_neither_or_both_is_refused(arguments: dict[str, Any], message: str) -> None:
    deciders: Any = students()
    with pytest.raises(InvalidInput, match=message):
        deciders.handle("Student-1", **arguments)


def test_a_decision_on_a_stream_and_a_query_can_return_a_result() -> None:
    deciders = students()
    deciders.handle("Student-1", "one")
    result, outcome = deciders.handle(
        "Student-2", decide=lambda _, model: (model["taken"], ["two"]), given=TAKEN, with_result=True
    )
    assert (result, outcome.events) == (1, ("two",))


@pytest.mark.parametrize("load", [AllowStale(), None])
def test_a_rule_over_a_stream_and_a_query_is_decided_only_on_what_the_caller_has_seen(load: Any) -> None:
    deciders = students(cache=Cache())
    options = {} if load is None else {"load": load}
    seen = deciders.handle("Student-1", "one").token
    assert seen is not None
    decided: list[int] = []

    def decide(_: tuple[str, ...], model: Any) -> list[str]:
        decided.append(model["taken"])
        return ["more"]

    for expected in (NO_STREAM, AtVersion(2), Token(version=1, etag="another")):
        with pytest.raises(ConflictError):
            deciders.handle("Student-1", decide=decide, given=TAKEN, expected=expected, **options)
    assert decided == []
    deciders.handle("Student-1", decide=decide, given=TAKEN, expected=seen, **options)
    assert decided == [1]
    with pytest.raises(ConflictError):
        deciders.handle("Student-1", decide=decide, given=TAKEN, expected=seen, **options)


def test_a_decision_on_several_streams_is_made_only_on_what_the_caller_has_seen_of_each() -> None:
    deciders = students()
    seen = deciders.handle("Student-1", "one").token
    assert seen is not None

    def parties(second: Any = NO_STREAM) -> list[Party[tuple[str, ...], str]]:
        return [deciders.on("Student-1", expected=seen), deciders.on("Student-2", expected=second)]

    with pytest.raises(ConflictError, match="Student-2"):
        handle_all(parties(AtVersion(3)), lambda *_: [["more"], []])
    assert handle_all(parties(), lambda *_: [["more"], ["two"]]).parties[1].events == ("two",)
    with pytest.raises(ConflictError, match="Student-1"):
        handle_all(parties(AtVersion(1)), lambda *_: [["more"], []])
    assert [len(list(deciders.streams.read(name))) for name in ("Student-1", "Student-2")] == [2, 1]


def test_what_is_expected_of_a_party_is_checked_where_it_is_named() -> None:
    expected: Any = 3
    with pytest.raises(InvalidInput, match="expected: must be ANY"):
        students().on("Student-1", expected=expected)

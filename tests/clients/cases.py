"""Cases that every client of the HTTP API passes, in whatever language it is written: `cases.json`.

A case is a call, what a server does with each request that the call makes, and what the caller sees. The file has
`cases` and `shared` values, which cases name by `@name`.

    name        a sentence that states the claim
    call        name of a call and its arguments (below)
    options     settings of the client: `attempts`, `timeout` (seconds that an attempt may take), `auth`
    exchanges   requests in their order, each with the answer of the server
    sees        `value`: the result, or `error`: the type of the problem and its fields
    live        absent where the case needs a scripted server; else what differs on a real API: `before`, calls that are
                made first, and `sees`

**Calls.** Arguments have the names of the API's fields, in this spelling, and are left out where they have no value:

    append         stream, events, unfolds, expected, failIf, after, key → first, version, token, replayed, position
    append_all     appends, failIf, after, key → streams, replayed
    append_each    appends → results: each as of `append`, or with an `error`
    append_tagged  events, failIf, after, key → events, position, versions, replayed
    query_tagged   query, after, limit, direction → events of all pages, position
    read           stream, from, limit, direction, types → events of all pages
    state          stream → version, token, unfolds
    decide         stream, limit, attempts → version; the decider is `counter`
    feed           categories, from, take → items, until there are `take`; checkpoint behind them

The decider `counter` folds the number of events of a stream from 0. Its decision is one event
`{"type": "Counted", "data": {"n": <number>}}` while the number is below `limit`, and none from there on. `decide` tries
as often as `attempts` says. `feed` reads all partitions, one page of each in turn, in the order of their numbers, from
`from` on: `beginning` (if left out), `tail`, or a checkpoint. A checkpoint is an object of positions by partition. A
partition whose page is empty, at the tail, is left out until its `Retry-After` is over.

**An exchange** has a `request` and one of `answer`, `cut`, `silence`:

    request   method, path, query, headers, body: `same` for a request that repeats the one before
    answer    status, headers, body
    cut       `{"request": n}`: the connection is reset after n bytes of the request's body
              `{"answer": n}`: the request is read and answered with `answer`, but reset after n bytes of the answer
    silence   true: the request is read and never answered
    after     seconds that the client has to wait before the request, at least

The number of a cut may be a list: the case is then one for each number. Negative numbers count from the end: -1 is
behind the last byte. A query, whose parameters of one name are joined by commas, and a body are compared exactly;
headers only where they are named, and null stands for a header that must be missing.

**Values.** In requests and in `sees`, objects that the caller sees may have further fields; lists have exactly the
entries that are named. Text that begins with `$` stands for

    $uuidv7, $uuidv7:name   a UUIDv7 of the last minute; under a name it is the same wherever the name is
    $text                   any text that is not empty
    $number                 any number
    $url/…                  an address of the server, in answers

`{run}` in a text is a number that is different each time a case is played, so that names are new on a real API.
Positions and tokens are such as a store writes, since a client may read them.

**Errors** have the `type` of the problem without `urn:epochal:problem:`, `gateway` for what API Gateway answers by
itself (with `status`), `connection` where no answer arrived, and `content` for a body that does not have its hash.
`maybeApplied` says whether the append may have been made: an attempt ended without an answer or with a 5xx, and no
later answer settled it.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("cases.json")

_UUIDV7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

_SAME: Final = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case of the file.

    Attributes:
        name: what it claims.
        call: name of the call, and its arguments.
        options: settings of the client.
        exchanges: requests and what the server does with them; a repeated request is written out.
        sees: what the caller must see.
        live: what differs on a real API; None for a case that needs a scripted server.
    """

    name: str
    call: Mapping[str, Any]
    options: Mapping[str, Any]
    exchanges: tuple[Mapping[str, Any], ...]
    sees: Mapping[str, Any]
    live: Mapping[str, Any] | None

    def of_run(self, run: str) -> Case:
        """Return the case with the number of a run in all texts."""
        return replace(
            self,
            call=with_run(self.call, run),
            exchanges=with_run(self.exchanges, run),
            sees=with_run(self.sees, run),
            live=with_run(self.live, run),
        )


def read_cases() -> list[Case]:
    """Read all cases; one with a list of places to cut at is one case for each place."""
    file = json.loads(FILE.read_text("utf-8"))
    return [case for entry in file["cases"] for case in _cases_of(_with_shared(entry, file["shared"]))]


def _with_shared(value: Any, shared: Mapping[str, Any]) -> Any:
    """Return a value with the shared values that it names by `@name`."""
    match value:
        case str() if value.startswith("@"):
            return _with_shared(shared[value[1:]], shared)
        case dict():
            return {name: _with_shared(inner, shared) for name, inner in value.items()}
        case list():
            return [_with_shared(inner, shared) for inner in value]
        case _:
            return value


def _cases_of(entry: Mapping[str, Any]) -> Iterator[Case]:
    """Yield the cases of an entry of the file."""
    case = Case(
        name=entry["name"],
        call=entry["call"],
        options=entry.get("options", {}),
        exchanges=tuple(_written_out(entry["exchanges"])),
        sees=entry["sees"],
        live=entry.get("live"),
    )
    lists = [
        (number, side, places)
        for number, exchange in enumerate(case.exchanges)
        for side, places in exchange.get("cut", {}).items()
        if isinstance(places, list)
    ]
    if not lists:
        yield case
        return
    ((number, side, places),) = lists
    for place in places:
        exchanges = list(case.exchanges)
        exchanges[number] = {**exchanges[number], "cut": {side: place}}
        yield replace(case, name=f"{case.name} ({side} byte {place})", exchanges=tuple(exchanges))


def _written_out(exchanges: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield exchanges with the request that a repeated one repeats."""
    request: Any = None
    for exchange in exchanges:
        request = request if exchange["request"] == _SAME else exchange["request"]
        yield {**exchange, "request": request}


def with_run(value: Any, run: str) -> Any:
    """Return a value with the number of a run in all its texts and names."""
    match value:
        case str():
            return value.replace("{run}", run)
        case dict():
            return {with_run(name, run): with_run(inner, run) for name, inner in value.items()}
        case list() | tuple():
            return type(value)(with_run(inner, run) for inner in value)
        case _:
            return value


class Matcher:
    """Compares values with what a case says of them; names stand for the same text from then on."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def difference(self, expected: Any, value: Any, *, exact: bool, place: str = "") -> str | None:
        """Return where a value is not what is expected and why; None where it is.

        Args:
            exact: whether objects may have no further fields.
            place: what the value is called.
        """
        if isinstance(expected, str) and expected.startswith("$"):
            matches = self._fits(expected, value)
        elif isinstance(expected, dict) and isinstance(value, dict):
            return self._fields_differ(expected, value, exact=exact, place=place)
        elif isinstance(expected, list) and isinstance(value, list) and len(expected) == len(value):
            places = (
                self.difference(one, other, exact=exact, place=f"{place}[{number}]")
                for number, (one, other) in enumerate(zip(expected, value, strict=True))
            )
            return next((found for found in places if found is not None), None)
        else:
            matches = expected == value and isinstance(expected, bool) == isinstance(value, bool)
        return None if matches else f"{place or 'it'} is {value!r}, not {expected!r}"

    def _fields_differ(
        self, expected: Mapping[str, Any], value: Mapping[str, Any], *, exact: bool, place: str
    ) -> str | None:
        """Return where the fields of an object differ."""
        if exact and (further := value.keys() - expected.keys()):
            return f"{place or 'it'} has {sorted(further)} besides"
        for name, inner in expected.items():
            where = f"{place}.{name}" if place else name
            if name not in value:
                return f"{where} is missing"
            if (found := self.difference(inner, value[name], exact=exact, place=where)) is not None:
                return found
        return None

    def _fits(self, pattern: str, value: Any) -> bool:
        """Return whether a value is one of those that a pattern stands for."""
        kind, _, name = pattern[1:].partition(":")
        match kind:
            case "number":
                return isinstance(value, int | float) and not isinstance(value, bool)
            case "text":
                return isinstance(value, str) and value != ""
            case "uuidv7":
                return _is_uuidv7(value) and (not name or self._texts.setdefault(name, value) == value)
            case _:
                raise ValueError(f"{pattern!r} is no pattern: $uuidv7, $text and $number are")


def _is_uuidv7(value: Any) -> bool:
    """Return whether a value is a UUIDv7 of the last minute."""
    if not isinstance(value, str) or not _UUIDV7.fullmatch(value):
        return False
    made = int(value.replace("-", "")[:12], 16) / 1000
    return 0 <= time.time() - made + 0.002 < 60

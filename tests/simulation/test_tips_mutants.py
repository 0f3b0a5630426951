"""The simulation is worth its time: take any one rule out of appends, calves, reads or pruning, and a seed finds out.

Each mutant leaves out what DESIGN §5.3, §5.4 or §5.6, or the module it is in, asks for. The seeds are those that the
unchanged layout passes.
"""

# ruff: noqa: SLF001  # mutants are of steps that are nobody else's business
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.equinox import append, append_search, calving, keyed_appends, port, pruning
from epochal.contrib.equinox.append_search import Earlier, MarkedAppend
from epochal.contrib.equinox.keyed_appends import TipAttempts
from epochal.contrib.equinox.streams import Tips
from epochal.index import tip_append, tip_writes
from epochal.index.checkpoints import tip_key
from epochal.index.tip import StoredSpan, Tip, next_part, read_span
from epochal.index.wire_batch import WireBatch
from epochal.layout import key_records, once, streams
from epochal.layout.outcomes import conflict_at
from epochal.layout.streams import ReadPart
from epochal.model.expected_version import ANY, STREAM_EXISTS, UNREAD, expected_head
from epochal.model.outcomes import Appended
from epochal.model.tokens import Token, version_of
from epochal.plan.conditions import equals
from epochal.plan.ops import Get, Put, Query, Refusal, Steps
from epochal.plan.values import number
from tests.simulation.mutants import Mutants, Patch
from tests.simulation.stream_simulation import replay

SEEDS = 3_000

MUTANTS = Mutants()
mutant = MUTANTS.add


# ----------------------------------------------------------------------------------------------------------- appending


@mutant()
def the_tip_is_written_whatever_it_is(patch: Patch) -> None:
    update = tip_writes._update

    def anyhow(*given: Any, **named: Any) -> Any:
        planned, token = update(*given, **named)
        return replace(planned, condition=None), token

    patch.setattr(tip_writes, "_update", anyhow)


@mutant()
def a_version_alone_guards_the_tip(patch: Patch) -> None:
    patch.setattr(tip_writes, "unchanged_condition", lambda _etag, version: equals("n", number(version)))


@mutant()
def a_stream_is_created_over_another(patch: Patch) -> None:
    create = tip_writes.create_tip

    def anyhow(table: str, batch: WireBatch) -> tuple[Put, Token]:
        put, token = create(table, batch)
        return replace(put, condition=None), token

    patch.setattr(tip_append, "create_tip", anyhow)
    patch.setattr(keyed_appends, "create_tip", anyhow)


@mutant()
def what_is_expected_is_not_asked_for(patch: Patch) -> None:
    patch.setattr(append, "accepts", lambda _expected, tip: tip is None or not tip.deleted)


@mutant(dear=True)
def a_tombstone_is_written_over(patch: Patch) -> None:
    patch.setattr(tip_writes, "_OPEN", equals("i", tip_key("any")["i"]))


@mutant()
def a_refused_append_is_not_looked_for(patch: Patch) -> None:
    def unasked(*_: Any, **__: Any) -> Steps[None]:
        yield from ()

    patch.setattr(append, "_settle", unasked)


@mutant()
def only_the_latest_write_is_recognised_as_our_own(patch: Patch) -> None:
    def absent(*_: Any, **__: Any) -> Steps[Earlier]:
        yield from ()
        return Earlier.ABSENT

    patch.setattr(append, "_earlier", absent)


@mutant()
def appends_are_told_apart_by_their_contents(patch: Patch) -> None:
    def by_contents(span: StoredSpan, _wanted: bytes) -> int | None:
        return span.base if span.events else None

    patch.setattr(append_search, "_in_span", by_contents)


@mutant(begin=68)
def a_pruned_index_counts_as_never_written(patch: Patch) -> None:
    search = append_search.find

    def sure(*given: Any, **named: Any) -> Steps[MarkedAppend | Earlier]:
        found = yield from search(*given, **named)
        return Earlier.ABSENT if found is Earlier.PRUNED else found

    patch.setattr(append, "find", sure)
    patch.setattr(keyed_appends, "find", sure)


@mutant()
def a_key_is_not_remembered(patch: Patch) -> None:
    def forgetful(*_: Any) -> Steps[None]:
        yield from ()

    patch.setattr(once, "put_record", forgetful)
    patch.setattr(once, "load_record", forgetful)


@mutant()
def a_key_is_remembered_after_its_append(patch: Patch) -> None:
    append_once = once.append_once

    def late(given: Any, expected: Any, record: Any) -> Steps[Any]:
        if (yield from key_records.load_record(given.table, record)) is not None:
            return (yield from append_once(given, expected, record))
        result = yield from append.append(given.table, given.batch, expected, given.calving)
        yield from key_records.put_record(given.table, record, 0)
        return result

    patch.setattr(once, "append_once", late)


@mutant()
def a_key_that_comes_with_a_version_is_not_remembered(patch: Patch) -> None:
    """The append can be at that index alone; but what is expected later may be something else."""
    append_once = once.append_once

    def unrecorded(given: Any, expected: Any, record: Any) -> Steps[Any]:
        if expected in (ANY, STREAM_EXISTS):
            return (yield from append_once(given, expected, record))
        return (yield from append.append(given.table, given.batch, expected, given.calving))

    patch.setattr(once, "append_once", unrecorded)


@mutant(dear=True)
def a_tries_index_may_lie_below_what_its_key_is_remembered_with(patch: Patch) -> None:
    def as_it_is(_table: str, _record: Any, _version: int, seen: Any) -> Steps[Any]:
        yield from ()
        return seen

    patch.setattr(once, "lower_bound", as_it_is)


@mutant(dear=True)
def what_a_key_is_remembered_with_is_read_before_the_tip(patch: Patch) -> None:
    """Another call may use the key in between: the Tip has its append, and nobody looks for it."""

    def early(given: Any, expected: Any, record: Any) -> Steps[Any]:
        call = once._Call(attempts=given, expected=expected, record=record)
        known = expected_head(expected)
        if known is not UNREAD:
            version = version_of(known)
            if (yield from key_records.put_record(given.table, record, version)) is None:
                return (yield from once._append_with_retries(call, known))
        before = yield from key_records.load_record(given.table, record)
        tip = yield from given.load()
        if streams.accepts(expected, tip):
            yield from key_records.put_record(given.table, record, version_of(tip))
        return (yield from once._find_or_append(call, tip, before))

    patch.setattr(once, "append_once", early)


@mutant("refused|InvalidInput")
def the_record_of_a_key_forgets_its_stream(patch: Patch) -> None:
    of = key_records.KeyRecord.of
    patch.setattr(key_records.KeyRecord, "of", lambda _stream, key, now: of("", key, now))


@mutant(begin=66)
def unfolds_alone_are_remembered_without_their_contents(patch: Patch) -> None:
    patch.setattr(once, "check_contents", lambda *_: None)


@mutant(begin=57)
def unfolds_alone_are_written_whatever_their_key_was_used_for(patch: Patch) -> None:
    def unasked(*_: Any) -> Steps[bool]:
        yield from ()
        return False

    patch.setattr(TipAttempts, "is_pruned", unasked)


@mutant(begin=57)
def unfolds_alone_are_written_again_under_their_key(patch: Patch) -> None:
    def again(given: Any, expected: Any, _record: Any) -> Steps[Any]:
        return (yield from append.append(given.table, given.batch, expected, given.calving))

    patch.setattr(once, "unfold_once", again)


@mutant("is not of the head", dear=True)
def an_answer_has_the_token_of_what_another_has_written_since(patch: Patch) -> None:
    already = append._already

    def of_the_tip(batch: WireBatch, tip: Tip, first: int, **named: Any) -> Appended:
        written = already(batch, tip, first, **named)
        return replace(written, token=tip.token()) if tip.version == written.version else written

    patch.setattr(append, "_already", of_the_tip)


@mutant(dear=True)
def an_append_that_others_have_hidden_is_made_again(patch: Patch) -> None:
    append_on = append.append_on

    def hasty(*given: Any, **named: Any) -> Steps[Any]:
        result = yield from append_on(*given, **named)
        if isinstance(result, Appended) and result.token.size == 0:
            return conflict_at(None)
        return result

    patch.setattr(append, "append_on", hasty)
    patch.setattr(keyed_appends, "append_on", hasty)


# ------------------------------------------------------------------------------------------------------------- calving


@mutant()
def events_leave_the_tip_before_their_calf_is_put(patch: Patch) -> None:
    def unput(_table: str, _tip: Tip) -> Steps[bool]:
        yield from ()
        return True

    patch.setattr(tip_append, "calve", unput)


@mutant(begin=98)
def a_calf_is_put_over_another(patch: Patch) -> None:
    put_calf = tip_writes.put_calf
    for each in (tip_append, calving):
        patch.setattr(each, "put_calf", lambda *given: replace(put_calf(*given), condition=None))


@mutant()
def what_another_has_calved_is_taken_for_all_of_it(patch: Patch) -> None:
    def enough(table: str, tip: Tip) -> Steps[bool]:
        yield tip_writes.put_calf(table, tip.stream, tip.span)
        return True

    patch.setattr(tip_append, "calve", enough)


@mutant(dear=True)
def what_another_has_calved_is_calved_again(patch: Patch) -> None:
    def again(reply: Refusal, rest: StoredSpan) -> StoredSpan | None:
        assert reply.item is not None
        found = read_span(reply.item)
        return (
            rest.since(found.next - 1)
            if rest.base < found.next - 1 < rest.next
            else StoredSpan(base=rest.next)
        )

    for each in (tip_append, calving):
        patch.setattr(each, "uncalved", again)


@mutant()
def calves_forget_the_first_event(patch: Patch) -> None:
    put_calf = tip_writes.put_calf
    for each in (tip_append, calving):
        patch.setattr(
            each, "put_calf", lambda table, stream, span: put_calf(table, stream, span.since(span.base + 1))
        )


# ------------------------------------------------------------------------------------------------------------- reading


@mutant()
def only_the_tip_is_read(patch: Patch) -> None:
    def tip_only(table: str, cursor: Any, limit: int | None, *, consistent: bool) -> Steps[Any]:
        if cursor.forward and cursor.at >= cursor.head.span.base:
            return (yield from forward(table, cursor, limit, consistent=consistent))
        at = cursor.head.span.base if cursor.forward else cursor.head.low_water
        return ReadPart(spans=(), cursor=replace(cursor, at=at))

    forward = next_part

    patch.setattr(port, "next_part", tip_only)
    patch.setattr(port, "_backward", tip_only)


@mutant()
def a_page_is_forgotten(patch: Patch) -> None:
    """All calves but the first are skipped, as by a query whose next pages nobody asks for."""
    forward = next_part

    def first_page(table: str, cursor: Any, limit: int | None, *, consistent: bool) -> Steps[Any]:
        pages = yield from forward(table, cursor, limit, consistent=consistent)
        base = cursor.head.span.base
        return pages if cursor.at >= base else pages and replace(pages, cursor=replace(pages.cursor, at=base))

    patch.setattr(port, "next_part", first_page)


@mutant()
def events_that_calf_and_tip_both_hold_are_read_twice(patch: Patch) -> None:
    patch.setattr(port, "next_part", doubled(next_part))


def doubled(steps: Callable[..., Steps[Any]]) -> Callable[..., Steps[Any]]:
    """Calves are read whole, whatever of them has been passed."""

    def whole(table: str, cursor: Any, limit: int | None, *, consistent: bool) -> Steps[Any]:
        pages = yield from steps(table, cursor, limit, consistent=consistent)
        if pages is None or not pages.spans or cursor.at >= cursor.head.span.base:
            return pages
        reply = yield Query(
            table=table,
            partition=("p", tip_key(cursor.head.stream)["p"]),
            sort=("i", number(0), number(cursor.at)),
            forward=False,
            limit=1,
        )
        first = read_span(reply.items[0]) if reply.items else pages.spans[0]
        return replace(pages, spans=(first, *pages.spans[1:]))

    return whole


@mutant()
def what_is_pruned_is_read_while_it_is_there(patch: Patch) -> None:
    stand = port.stand
    patch.setattr(
        port, "stand", lambda tip, *given, **named: stand(replace(tip, low_water=0), *given, **named)
    )


@mutant(dear=True)
def a_calf_that_does_not_show_yet_is_not_looked_for_again(patch: Patch) -> None:
    """Nor waited for; what is taken for pruned then is not what was acknowledged."""

    def unsettled(table: str, cursor: Any) -> Get:
        return Get(table=table, key=tip_key(cursor.head.stream))

    patch.setattr(port, "LOOKS", 0)
    patch.setattr(port, "_build_barrier_read", unsettled)


# ------------------------------------------------------------------------------------------------------------- pruning


@mutant(dear=True)
def calves_are_deleted_before_the_tip_says_so(patch: Patch) -> None:
    prune = pruning.prune

    def eager(table: str, stream: str, before: int, etag: str, **options: Any) -> Steps[Any]:
        yield from pruning._delete_calves(table, stream, before, 99)
        return (yield from prune(table, stream, before, etag, **options))

    patch.setattr(Tips, "prune", staticmethod(eager))


@mutant(dear=True)
def a_calf_is_deleted_of_which_a_part_is_kept(patch: Patch) -> None:
    delete_calves = pruning._delete_calves

    def one_more(table: str, stream: str, mark: int, deletes: int) -> Steps[Any]:
        pruned = yield from delete_calves(table, stream, mark + 1 if mark else 0, deletes)
        return replace(pruned, low_water=mark)

    patch.setattr(pruning, "_delete_calves", one_more)


@mutant()
def the_tip_is_trimmed_whatever_it_is(patch: Patch) -> None:
    update = pruning._update
    patch.setattr(pruning, "_update", lambda *given: replace(update(*given), condition=None))


@mutant()
def a_prune_that_was_refused_counts_as_done(patch: Patch) -> None:
    replace_tip = pruning._replace

    def done(table: str, tip: Tip, wanted: Tip, etag: str) -> Steps[tuple[Tip | None, bool]]:
        yield from replace_tip(table, tip, wanted, etag)
        return wanted, True

    patch.setattr(pruning, "_replace", done)


@pytest.mark.parametrize("name", MUTANTS.names())
def test_a_seed_finds_out(name: str, monkeypatch: Patch) -> None:
    MUTANTS.find_out(name, monkeypatch, replay, SEEDS)

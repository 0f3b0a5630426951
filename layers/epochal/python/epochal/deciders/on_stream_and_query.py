"""Decisions on a stream and a query: the state of one stream, and projections of tagged events of the same table.

The events are stored in the stream if its head is the one that was read, and if no newer event matches the query. A
decision that stores nothing is answered after the stream's head was read again after the query, and had not changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from epochal.deciders.folding import Loaded
from epochal.deciders.loop import Earlier, Moved
from epochal.deciders.on_queries import Decisions, Model, catch_up, query_of, with_newer_events
from epochal.deciders.projections import Projection
from epochal.deciders.stream_decisions import DecisionBase, OnStreams
from epochal.errors import ConditionUnmet
from epochal.layout.streams import Also
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.outcomes import Conflict, Outcome
from epochal.model.stream_append import StreamAppend
from epochal.store.answers import token_of
from epochal.store.appending import AppendOptions, append_on
from epochal.store.queueing import Key
from epochal.store.tagged_pages import TaggedEvents

E = TypeVar("E")
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class OnStreamAndQuery(OnStreams[R], Generic[R]):
    """A decision on a stream and a query.

    It is confirmed if the stream, read after the model, is still as it was loaded.
    """

    projections: Mapping[str, Projection[Any]]

    @property
    def queue_keys(self) -> Sequence[Key]:
        """The stream, and the tags that an append on the query checks."""
        return [*super().queue_keys, *self._tagged.queues_of(query_of(self.projections))]

    def load(self) -> DecisionBase | Earlier[R, Any]:
        """Load the stream's state, then the model."""
        (party,) = self.parties
        model = Decisions(store=self._tagged)
        loaded = (party.deciders.loader.load(party.stream, self.how, self._latest(party.stream)),)
        return self._unless_decided(loaded, DecisionBase(loaded=loaded, model=model.model(self.projections)))

    def confirmed(self, base: DecisionBase) -> bool:
        """Return whether the stream was read again after the model, and had not changed."""
        return base.confirmed

    def confirm(self, base: DecisionBase) -> DecisionBase | Earlier[R, Any]:
        """Read the stream again; return the confirmed base, a newer one if it changed, or an earlier answer."""
        ((party,), (before,)) = self.parties, base.loaded
        loaded = party.deciders.loader.read(party.stream, before)
        if token_of(loaded.known_head) == token_of(before.known_head):
            return DecisionBase(loaded=(loaded,), model=base.model)
        newer = self._unless_decided((loaded,), base)
        return newer if isinstance(newer, Earlier) else replace(newer, model=self._catch_up(base.model))

    def _append(
        self, base: DecisionBase, appends: Sequence[StreamAppend], also: Also
    ) -> Outcome | Moved[DecisionBase, R, Any]:
        """Append if the stream is as read and no newer event matches the query; return outcome or `Moved`."""
        (only,) = appends
        options = AppendOptions(fail_if=base.model.query, after=base.model.position, also=also)
        outcome = append_on(self.streams, {only.stream: base.loaded[0].known_head}, [only], options, self.key)
        if not isinstance(outcome, Conflict) or outcome.streams:
            return outcome
        if outcome.unmet:
            raise ConditionUnmet(list(outcome.unmet), outcome)

        def onward(newest: bool) -> DecisionBase:
            """Update the model after a conflict."""
            model = with_newer_events(base.model, self.projections, outcome)
            return replace(base, model=model if newest else self._catch_up(model), confirmed=False)

        return Moved(name=only.stream, onward=onward)

    def _unless_decided(
        self, loaded: Sequence[Loaded[Any]], before: DecisionBase | None = None
    ) -> DecisionBase | Earlier[R, Any]:
        """Return the unconfirmed base, or the answer of an earlier call with the same key."""
        base = super()._unless_decided(loaded, before)
        return base if isinstance(base, Earlier) else replace(base, confirmed=False)

    @property
    def _tagged(self) -> TaggedEvents:
        return self.streams.tagged

    def _catch_up(self, model: Model) -> Model:
        return catch_up(self._tagged, model, self.projections)

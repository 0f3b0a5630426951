"""A caller may wait for the version of its append, whatever types the last events have that the model does not read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Column, Connection, MetaData, Table, Text, create_engine, insert

from epochal import Delivery, Event, FeedEvent, later, reaction
from epochal.contrib.sql import SqlReadModel, SqlReadModels
from epochal.testing.feeds import MemoryStore

LENT = Event(type="Lent")
TIMER = later("reminder", [Event(type="Reminded")], at=timedelta(days=1))


def described(generation: int) -> MetaData:
    metadata = MetaData()
    Table(f"loans_{generation}", metadata, Column("stream", Text), Column("type", Text))
    return metadata


def opened(folder: Path) -> SqlReadModel:
    engine = create_engine(f"sqlite:///{folder / 'models.db'}")
    model = SqlReadModels(engine=engine, tables={"loans": described}).open("loans", 1)
    model.create()
    return model


@pytest.mark.parametrize("types", [None, ["Lent"]])
def test_the_version_of_an_append_is_reached_that_ends_with_types_the_model_does_not_read(
    types: list[str] | None, tmp_path: Path
) -> None:
    feed, model = MemoryStore(), opened(tmp_path)

    def show(connection: Connection, event: FeedEvent) -> None:
        connection.execute(insert(model.tables["loans"]).values(stream=event.stream, type=event.type))

    @reaction(name="loans-1", categories=["Loan"], types=types)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, show)

    version = feed.streams.append("Loan-1", [LENT, TIMER]).version
    feed.react(keep)
    assert model.place("Loan-1") == version
    assert model.wait_for("Loan-1", version, seconds=0)


def test_an_append_of_unread_types_alone_is_passed_with_skip(tmp_path: Path) -> None:
    feed, model = MemoryStore(), opened(tmp_path)

    def show(connection: Connection, event: FeedEvent) -> None:
        connection.execute(insert(model.tables["loans"]).values(stream=event.stream, type=event.type))

    @reaction(name="loans-1", categories=["Loan"], skipped=model.skip)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, show)

    for events in ([TIMER], [LENT], [TIMER], [LENT, TIMER]):
        version = feed.streams.append("Loan-1", events).version
        assert not model.wait_for("Loan-1", version, seconds=0)
        feed.react(keep)
        assert model.wait_for("Loan-1", version, seconds=0)


def test_events_that_are_folded_are_passed_when_they_come_again_with_more(tmp_path: Path) -> None:
    model = opened(tmp_path)
    events = (FeedEvent(stream="Loan-1", index=0, type="Lent"),)
    model.apply(Delivery(group="g", partition=0, stream="Loan-1", events=events), lambda _, __: None)
    again = Delivery(group="g", partition=0, stream="Loan-1", events=events, next=3)
    assert (model.apply(again, lambda _, __: None), model.place("Loan-1")) == (0, 3)
    assert not model.skip(Delivery(group="g", partition=0, stream="Loan-1", events=(), next=2))
    assert model.place("Loan-1") == 3

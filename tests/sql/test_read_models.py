"""Read models in a SQL database: every event once, whoever delivers it how often, and one generation beside another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    StaticPool,
    Table,
    Text,
    create_engine,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError, IntegrityError

from epochal import Delivery, Event, FeedEvent, reaction
from epochal.contrib.sql.read_models import ATTEMPTS, FEW, SqlReadModel, SqlReadModels
from epochal.errors import Contended, InvalidInput
from epochal.layout.changes import Removal
from epochal.testing.feeds import MemoryStore
from tests.sql.dsql import MAX_ROWS, dsql_engine, refuse_commits
from tests.support.postgres import Postgres


def described(generation: int) -> MetaData:
    metadata = MetaData()
    counts = Table(f"counts_{generation}", metadata)
    counts.append_column(Column("type", Text, primary_key=True))
    counts.append_column(Column("n", Integer, nullable=False, index=True))
    Table(
        f"places_{generation}",
        metadata,
        Column("stream", Text, primary_key=True),
        Column("at", Integer, primary_key=True, autoincrement=False),
    )
    if generation > 2:
        Table(f"new_{generation}", metadata, Column("id", Text, primary_key=True))
        metadata.remove(metadata.tables[f"places_{generation}"])
    return metadata


def models(engine: Engine, **given: Any) -> SqlReadModels:
    return SqlReadModels(engine=engine, tables={"counts": described}, **{"sleep": lambda _: None, **given})


def opened(engine: Engine, generation: int = 1) -> SqlReadModel:
    model = models(engine).open("counts", generation)
    model.create()
    return model


def delivery(stream: str, first: int, *types: str, removal: Removal | None = None) -> Delivery:
    events = tuple(
        FeedEvent(stream=stream, index=first + offset, type=kind) for offset, kind in enumerate(types)
    )
    return Delivery(group="counts", partition=0, stream=stream, events=events, removal=removal)


def counting(model: SqlReadModel) -> Callable[[Connection, FeedEvent], None]:
    """How many events of each type there have been: read, then written."""
    counts = model.tables["counts"]

    def fold(connection: Connection, event: FeedEvent) -> None:
        n = connection.execute(select(counts.c.n).where(counts.c.type == event.type)).scalar()
        if n is None:
            connection.execute(insert(counts).values(type=event.type, n=1))
        else:
            connection.execute(update(counts).where(counts.c.type == event.type).values(n=n + 1))

    return fold


def found(model: SqlReadModel) -> dict[str, int]:
    with model.database.engine.connect() as connection:
        return {each.type: each.n for each in connection.execute(select(model.tables["counts"]))}


def test_events_are_folded_into_tables_and_what_is_delivered_again_is_folded_once(engine: Engine) -> None:
    model = opened(engine)
    assert model.place("A-1") is None
    assert model.apply(delivery("A-1", 0, "x", "y", "x"), counting(model)) == 3
    assert model.apply(delivery("A-1", 0, "x", "y", "x"), counting(model)) == 0
    assert model.apply(delivery("A-1", 2, "x", "y"), counting(model)) == 1
    assert (found(model), model.place("A-1")) == ({"x": 2, "y": 2}, 4)


def test_tables_that_are_there_are_not_made_again_by_whoever_comes_at_the_same_time(
    snapshots: Engine,
) -> None:
    failures: list[BaseException] = []

    def create() -> None:
        try:
            opened(snapshots)
        except BaseException as error:  # noqa: BLE001  a thread's error is the test's
            failures.append(error)

    threads = [threading.Thread(target=create) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    opened(snapshots)
    assert [each["name"] for each in inspect(snapshots).get_indexes("counts_1")] == ["ix_counts_1_n"]


def test_what_a_fold_reads_and_writes_nobody_else_has_written_meanwhile(snapshots: Engine) -> None:
    model = opened(snapshots)
    model.apply(delivery("A-1", 0, "x"), counting(model))
    meanwhile = iter([delivery("B-1", 0, "x"), delivery("B-1", 1, "y")])

    def fold(connection: Connection, event: FeedEvent) -> None:
        counts = model.tables["counts"]
        n = connection.execute(select(counts.c.n).where(counts.c.type == event.type)).scalar()
        if (other := next(meanwhile, None)) is not None:
            model.apply(other, counting(model))
        if n is None:
            connection.execute(insert(counts).values(type=event.type, n=1))
        else:
            connection.execute(update(counts).where(counts.c.type == event.type).values(n=n + 1))

    assert model.apply(delivery("C-1", 0, "x"), fold) == 1
    assert model.apply(delivery("C-1", 1, "y"), fold) == 1, "a row that another has made first"
    assert found(model) == {"x": 3, "y": 2}


def test_two_who_fold_the_same_fold_it_once(snapshots: Engine) -> None:
    model = opened(snapshots)
    for first in range(2):  # the first delivery makes the stream's row, the second finds it
        overtaken = False

        def fold(connection: Connection, event: FeedEvent, first: int = first) -> None:
            nonlocal overtaken
            if not overtaken:
                overtaken = True
                model.apply(delivery("A-1", first, "x"), lambda *_: None)
            connection.execute(text("SELECT 1"))

        assert model.apply(delivery("A-1", first, "x"), fold) == 0
    assert model.place("A-1") == 2


def test_who_is_always_slower_gives_up_and_has_changed_nothing(aurora_engine: Engine) -> None:
    model = opened(aurora_engine)
    left = refuse_commits(aurora_engine, ATTEMPTS)
    with pytest.raises(Contended, match="A-1: overtaken by other writers at each of 20 attempts"):
        model.apply(delivery("A-1", 0, "x"), counting(model))
    assert (left(), found(model), model.place("A-1")) == (0, {}, None)
    refuse_commits(aurora_engine, ATTEMPTS - 1)
    assert model.apply(delivery("A-1", 0, "x"), counting(model)) == 1


def test_a_commit_whose_answer_is_lost_is_made_once(postgres_engine: Engine) -> None:
    model = opened(postgres_engine)
    commit, lost = postgres_engine.dialect.do_commit, 0

    def losing(connection: Any) -> None:
        nonlocal lost
        commit(connection)
        if not lost:
            lost += 1
            connection.dbapi_connection.close()
            connection.dbapi_connection.execute("SELECT 1")

    postgres_engine.dialect.do_commit = losing  # type: ignore[method-assign]
    model.apply(delivery("A-1", 0, "x"), counting(model))
    assert lost
    assert (found(model), model.place("A-1")) == ({"x": 1}, 1)


def test_a_fold_that_fails_changes_nothing(engine: Engine) -> None:
    model = opened(engine)

    def fold(connection: Connection, event: FeedEvent) -> None:
        counting(model)(connection, event)
        if event.index == 1:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        model.apply(delivery("A-1", 0, "x", "x"), fold)
    assert (found(model), model.place("A-1")) == ({}, None)


@pytest.mark.parametrize("ending", ["commit", "rollback"])
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("swallows", [False, True])
def test_a_fold_cannot_end_the_transaction(engine: Engine, ending: str, at: int, swallows: bool) -> None:
    model = opened(engine)

    def fold(connection: Connection, event: FeedEvent) -> None:
        counting(model)(connection, event)
        if event.index == at:
            try:
                getattr(connection, ending)()
            except InvalidInput:
                if not swallows:
                    raise

    with pytest.raises(
        Exception, match="must leave the transaction|inactive|closed transaction|invalid transaction"
    ):
        model.apply(delivery("A-1", 0, "x", "x"), fold)
    assert (found(model), model.place("A-1")) == ({}, None)


def _raw(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


BELOW: dict[str, Callable[[Connection], object]] = {
    "COMMIT": lambda connection: connection.exec_driver_sql("COMMIT"),
    "ROLLBACK": lambda connection: connection.exec_driver_sql("ROLLBACK"),
    "a comment before": lambda connection: connection.execute(text("/* a */ -- b\n ;commit")),
    "END": lambda connection: connection.execute(text("end transaction")),
    "pool commit": lambda connection: connection.connection.commit(),
    "pool rollback": lambda connection: connection.connection.rollback(),
    "driver commit": lambda connection: _raw(connection).commit(),
    "driver rollback": lambda connection: _raw(connection).rollback(),
    "driver COMMIT": lambda connection: _raw(connection).execute("COMMIT"),
    "driver ROLLBACK": lambda connection: _raw(connection).execute("ROLLBACK"),
}


def below(model: SqlReadModel, end: Callable[[Connection], object], at: int = 1, *, swallows: bool) -> Any:
    """A fold that counts, and ends the transaction at an event."""

    def fold(connection: Connection, event: FeedEvent) -> None:
        counting(model)(connection, event)
        if event.index == at:
            try:
                end(connection)
            except Exception:
                if not swallows:
                    raise

    return fold


@pytest.mark.parametrize("swallows", [False, True])
@pytest.mark.parametrize("how", BELOW)
def test_a_fold_cannot_end_the_transaction_below_sqlalchemy(engine: Engine, how: str, swallows: bool) -> None:
    model = opened(engine)
    model.apply(delivery("A-1", 0, "x"), counting(model))
    committed = engine.dialect.name != "sqlite" and how == "driver COMMIT"
    with pytest.raises(InvalidInput, match="must leave the transaction"):
        model.apply(delivery("A-1", 1, "x", "x", "x"), below(model, BELOW[how], 2, swallows=swallows))
    assert model.place("A-1") == 1
    assert found(model) == {"x": 3 if committed else 1}, "what psycopg sends past us stays"
    assert model.apply(delivery("A-1", 1, "y"), counting(model)) == 1, "the connection is as it was"
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        _raw(connection).rollback()
        _raw(connection).commit()


@pytest.mark.parametrize("statement", ["COMMIT; SELECT 1", "SELECT 1; COMMIT", "SELECT 1; ROLLBACK; BEGIN"])
def test_several_statements_in_one_text_are_noticed_and_the_rest_is_taken_back(
    snapshots: Engine, statement: str
) -> None:
    model = opened(snapshots)
    fold = below(model, lambda connection: _raw(connection).execute(statement), swallows=False)
    with pytest.raises(InvalidInput, match="must leave the transaction"):
        model.apply(delivery("A-1", 0, "x", "x", "x"), fold)
    assert model.place("A-1") is None
    assert found(model) == ({"x": 2} if "COMMIT" in statement else {})


@pytest.mark.parametrize("how", ["executescript", "isolation_level"])
def test_what_sqlites_driver_commits_first_is_refused(sqlite_engine: Engine, how: str) -> None:
    model = opened(sqlite_engine)

    def end(connection: Connection) -> None:
        if how == "executescript":
            _raw(connection).executescript("SELECT 1")
        else:
            _raw(connection).isolation_level = None

    with pytest.raises(InvalidInput, match="must leave the transaction"):
        model.apply(delivery("A-1", 0, "x", "x", "x"), below(model, end, swallows=False))
    assert (found(model), model.place("A-1")) == ({}, None)


def test_a_constraint_of_sqlite_that_rolls_back_is_noticed(sqlite_engine: Engine) -> None:
    model = opened(sqlite_engine)
    again = "INSERT OR ROLLBACK INTO counts_1 (type, n) VALUES ('x', 7)"
    fold = below(model, lambda connection: connection.exec_driver_sql(again), at=0, swallows=True)
    with pytest.raises(InvalidInput, match="must leave the transaction"):
        model.apply(delivery("A-1", 0, "x", "y"), fold)
    assert (found(model), model.place("A-1")) == ({}, None)


def test_savepoints_are_a_folds_own(engine: Engine) -> None:
    if engine.dialect.name == "auroradsql":
        return  # it has none
    model = opened(engine)

    def fold(connection: Connection, event: FeedEvent) -> None:
        with suppress(ValueError), connection.begin_nested():
            counting(model)(connection, event)
            if event.index == 1:
                raise ValueError
        connection.execute(text("SAVEPOINT mine"))
        counting(model)(connection, event)
        connection.execute(text("ROLLBACK TO mine"))
        connection.execute(text("SELECT 'commit' AS commit_, 'x; ROLLBACK' AS ending"))

    assert model.apply(delivery("A-1", 0, "x", "x", "x"), fold) == 3
    assert (found(model), model.place("A-1")) == ({"x": 2}, 3)


def test_a_refusal_that_a_fold_keeps_to_itself_is_no_success(postgres_engine: Engine) -> None:
    """PostgreSQL answers the commit of a broken transaction as it does any other, and rolls back."""
    model = opened(postgres_engine)

    def fold(connection: Connection, event: FeedEvent) -> None:
        counts = model.tables["counts"]
        connection.execute(insert(counts).values(type=event.type, n=1))
        with suppress(IntegrityError):
            connection.execute(insert(counts).values(type=event.type, n=1))

    with pytest.raises(DBAPIError, match="aborted"):
        model.apply(delivery("A-1", 0, "x"), fold)
    assert model.place("A-1") is None


def test_a_row_that_is_refused_again_and_again_is_the_folds_own_mistake(engine: Engine) -> None:
    model = opened(engine)
    calls = 0

    def fold(connection: Connection, event: FeedEvent) -> None:
        nonlocal calls
        calls += 1
        connection.execute(insert(model.tables["counts"]).values(type=event.type, n=None))

    with pytest.raises(IntegrityError):
        model.apply(delivery("A-1", 0, "x"), fold)
    assert calls == FEW


def test_an_engine_that_commits_each_statement_has_transactions_here(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path / 'models.db'}", isolation_level="AUTOCOMMIT")
    test_a_fold_that_fails_changes_nothing(engine)
    engine.dispose()


def test_a_fold_that_nothing_awaits_is_refused(sqlite_engine: Engine) -> None:
    model = opened(sqlite_engine)

    async def fold(_: object, __: object) -> None: ...

    with pytest.raises(InvalidInput, match="plain function"):
        model.apply(delivery("A-1", 0, "x"), fold)
    with pytest.raises(InvalidInput, match="plain function"):
        model.apply(delivery("A-1", 0, "x"), lambda *given: fold(*given))  # noqa: PLW0108  it is a plain function to look at
    assert model.place("A-1") is None


def test_a_removal_is_folded_once_and_a_later_one_stays(engine: Engine) -> None:
    model = opened(engine)
    model.apply(delivery("A-1", 0, "x", "x"), counting(model))
    pruned, deleted = (
        delivery("A-1", 2, removal=Removal("A-1", end, kind, 2))
        for end, kind in ((1, "pruned"), (2, "deleted"))
    )
    folded: list[str] = []

    def forget(_: Connection, removal: Removal) -> None:
        folded.append(removal.kind)

    assert [model.remove(each, forget) for each in (pruned, pruned, deleted, pruned, deleted)] == [
        *(True, False, True, False, False)
    ]
    assert folded == ["pruned", "deleted"]
    assert model.place("A-1") == 2
    assert model.remove(delivery("B-1", 0, removal=Removal("B-1", 1, "deleted", 1)), forget)
    assert model.place("B-1") is None
    assert model.apply(delivery("B-1", 0, "x"), counting(model)) == 1
    with pytest.raises(InvalidInput, match="of a removal"):
        model.remove(delivery("A-1", 2, "x"), forget)


@pytest.mark.parametrize("stream", ["A-" + "é" * 300, "A-\0", "sha256:x", "A-'\"%s:x"])
def test_any_name_of_a_stream_has_a_place_of_its_own(engine: Engine, stream: str) -> None:
    model = opened(engine)
    model.apply(delivery(stream, 0, "x"), counting(model))
    assert (model.place(stream), model.place(f"{stream}x"), found(model)) == (1, None, {"x": 1})


def test_a_caller_waits_until_its_events_are_in_the_tables(engine: Engine) -> None:
    times = iter(range(100))
    model = models(engine, clock=lambda: float(next(times))).open("counts", 1)
    model.create()
    assert not model.wait_for("A-1", 1, seconds=3)
    assert next(times) == 4
    model.apply(delivery("A-1", 0, "x", "x"), counting(model))
    assert model.wait_for("A-1", 2, seconds=0)
    assert not model.wait_for("A-1", 3, seconds=0)


def test_a_generation_is_built_beside_the_live_one_and_takes_its_place(engine: Engine) -> None:
    all_ = models(engine)
    first, second, third = (opened(engine, generation) for generation in (1, 2, 3))
    first.apply(delivery("A-1", 0, "x"), counting(first))
    assert all_.live("counts").generation == 1
    all_.swap("counts", 1)
    assert viewed(engine) == [("x", 1)]

    second.apply(delivery("A-1", 0, "x"), counting(second))
    second.apply(delivery("A-1", 1, "x"), counting(second))
    assert (first.place("A-1"), second.place("A-1")) == (1, 2)
    assert viewed(engine) == [("x", 1)]
    all_.swap("counts", 2)
    all_.swap("counts", 2)
    assert viewed(engine) == [("x", 2)]
    assert all_.live("counts").generation == 2
    with pytest.raises(InvalidInput, match="must not be 1: 2 is live already, and a swap only goes forward"):
        all_.swap("counts", 1)

    all_.drop("counts", 1)
    with pytest.raises(InvalidInput, match="must not be the live one, "):
        all_.drop("counts", 2)
    assert first.place("A-1") is None
    assert second.place("A-1") == 2
    assert {"counts_1", "places_1"}.isdisjoint(inspect(engine).get_table_names())

    third.apply(delivery("A-1", 0, "x"), counting(third))
    all_.swap("counts", 3)
    assert set(inspect(engine).get_view_names()) == {"counts", "new"}, "none of tables that it has no more"
    all_.drop("counts", 2)
    assert viewed(engine) == [("x", 1)]


def test_a_generation_without_tables_does_not_become_the_live_one(engine: Engine) -> None:
    all_, first = models(engine), opened(engine)
    first.apply(delivery("A-1", 0, "x"), counting(first))
    all_.swap("counts", 1)
    for generation in (2, 3):
        with pytest.raises(
            InvalidInput, match=f"generation: {generation} of counts has no table counts_{generation}: create"
        ):
            all_.swap("counts", generation)
    assert all_.live("counts").generation == 1
    assert viewed(engine) == [("x", 1)]


def viewed(engine: Engine) -> list[tuple[str, int]]:
    with engine.connect() as connection:
        return [(kind, n) for kind, n in connection.execute(text("SELECT type, n FROM counts"))]


def test_a_reaction_to_a_generation_that_is_dropped_fails_and_does_not_begin_anew(engine: Engine) -> None:
    first, _ = opened(engine), opened(engine, 2)
    first.apply(delivery("A-1", 0, "x"), counting(first))
    models(engine).swap("counts", 2)
    models(engine).drop("counts", 1)
    with pytest.raises(DBAPIError):
        first.apply(delivery("A-1", 1, "x"), counting(first))
    assert first.place("A-1") is None


def test_what_could_not_be_kept_is_refused(sqlite_engine: Engine) -> None:
    all_ = models(sqlite_engine)
    for name, generation, said in (
        ("other", 1, "must be one of counts"),
        ("counts", 0, "at least 1"),
        ("", 1, "bytes"),
    ):
        with pytest.raises(InvalidInput, match=said):
            all_.open(name, generation)
    fixed = MetaData()
    Table("counts", fixed, Column("type", Text, primary_key=True))
    with pytest.raises(InvalidInput, match="names that end with _1, but counts does not"):
        SqlReadModels(engine=sqlite_engine, tables={"counts": lambda _: fixed}).open("counts", 1)
    with pytest.raises(InvalidInput, match="must not share one connection"):
        models(create_engine("sqlite://", poolclass=StaticPool))
    with pytest.raises(InvalidInput, match="must be for postgresql, auroradsql, sqlite, not mysql"):
        models(_of_mysql())


def _of_mysql() -> Engine:
    engine = create_engine("sqlite://")
    engine.dialect.name = "mysql"
    return engine


def test_a_reaction_fills_it_and_what_failed_is_folded_when_it_is_replayed(engine: Engine) -> None:
    feed, model, broken = MemoryStore(), opened(engine), True

    def fold(connection: Connection, event: FeedEvent) -> None:
        if broken and event.stream == "A-1":
            raise ValueError("no")
        counting(model)(connection, event)

    def forget(connection: Connection, removal: Removal) -> None:
        connection.execute(insert(model.tables["places"]).values(stream=removal.stream, at=removal.end))

    @reaction(name="counts-1", attempts=1, removed=lambda given: model.remove(given, forget))
    def fill(given: Delivery) -> None:
        model.apply(given, fold)

    feed.streams.append("A-1", [Event(type="x"), Event(type="y")])
    appended = feed.streams.append("B-1", [Event(type="x"), Event(type="x")])
    feed.react(fill)
    assert model.wait_for("B-1", appended.version, seconds=0)
    assert found(model) == {"x": 2}
    broken = False
    assert feed.parking(fill).replay(30_000, "A-1", seconds=60).unparked
    assert found(model) == {"x": 3, "y": 1}
    feed.streams.delete("B-1")
    feed.react(fill)
    with engine.connect() as connection:
        assert connection.execute(select(model.tables["places"])).all() == [("B-1", 2)]


def test_more_than_a_transaction_of_aurora_dsql_takes_goes_in_parts(aurora_engine: Engine) -> None:
    model, places = opened(aurora_engine), []

    def fold(connection: Connection, event: FeedEvent) -> None:
        rows = [{"stream": event.stream, "at": 1_000 * event.index + each} for each in range(1_000)]
        connection.execute(insert(model.tables["places"]), rows)
        places.append(model.place(event.stream))

    def many(connection: Connection, event: FeedEvent) -> None:
        rows = [{"stream": event.stream, "at": each} for each in range(MAX_ROWS + 1)]
        connection.execute(insert(model.tables["places"]), rows)

    assert model.apply(delivery("A-1", 0, *["x"] * 7), fold) == 7
    assert set(places) == {None, 2, 4, 6}
    with aurora_engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM places_1")).scalar() == 7_000
    with pytest.raises(DBAPIError, match="row limit"):
        model.apply(delivery("B-1", 0, "x"), many)


def test_what_aurora_dsql_refuses_the_double_refuses(postgres: Postgres, database: str) -> None:
    engine = dsql_engine(postgres.url(database, "auroradsql+psycopg"))
    refused = [
        ["CREATE INDEX i ON t (a)"],
        ["SAVEPOINT a"],
        ["TRUNCATE t"],
        ["CREATE TABLE s (a SERIAL)"],
        ["INSERT INTO t SELECT 1", "CREATE TABLE u (a int)"],
        [f"INSERT INTO t SELECT generate_series(1, {MAX_ROWS + 1})"],
    ]
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (a int)"))
    with engine.begin() as connection:
        connection.execute(text("CREATE INDEX ASYNC i ON t (a)"))
    for *others, last in refused:
        with engine.begin() as connection:
            for each in others:
                connection.execute(text(each))
            with pytest.raises(DBAPIError):
                connection.execute(text(last))
    with pytest.raises(DBAPIError), engine.connect() as connection:
        connection.execution_options(isolation_level="SERIALIZABLE").execute(text("SELECT 1"))
    engine.dispose()

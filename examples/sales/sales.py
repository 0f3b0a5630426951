"""What customers owe a shop: a read model of two categories in SQL, joined by whoever asks.

Money is in cents, since SQLite has no decimals. Generation 2 adds when an order was paid: it is built beside the one
that is live, and `swap` turns the views over, which readers name: `customers` and `orders`.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    text,
    update,
)

from epochal import Delivery, reaction
from epochal.contrib.sql.read_models import SqlReadModel, SqlReadModels
from epochal.feed.events import FeedEvent
from epochal.layout.changes import Removal
from epochal.reactions.definition import Reaction

OWED: Final = text("""
    SELECT c.name, count(*) AS orders, sum(o.cents) AS cents
    FROM orders o JOIN customers c ON c.id = o.customer
    WHERE NOT o.paid
    GROUP BY c.name ORDER BY c.name
""")


def described(generation: int) -> MetaData:
    """The tables of a generation."""
    metadata = MetaData()
    Table(f"customers_{generation}", metadata, Column("id", Text, primary_key=True), Column("name", Text))
    Table(
        f"orders_{generation}",
        metadata,
        Column("id", Text, primary_key=True),
        Column("customer", Text, index=True),
        Column("cents", BigInteger),
        Column("paid", Boolean),
        *([Column("paid_at", Text)] if generation > 1 else []),
    )
    return metadata


def updating(models: SqlReadModels, generation: int) -> Reaction:
    """What keeps a generation. Its own name has it begin at the beginning of the feed."""
    model = models.open("sales", generation)
    model.create()

    def removed(delivery: Delivery) -> None:
        model.remove(delivery, lambda connection, removal: forget(model, connection, removal))

    @reaction(name=f"sales-{generation}", categories=["Customer", "Order"], removed=removed)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, lambda connection, event: fold(model, connection, event))

    return keep


def fold(model: SqlReadModel, connection: Connection, event: FeedEvent) -> None:
    """Take one event into the tables; the order of an unknown customer waits for the join."""
    customers, orders = model.tables["customers"], model.tables["orders"]
    match event.type:
        case "Joined":
            connection.execute(insert(customers).values(id=event.stream, name=event.json()["name"]))
        case "Renamed":
            renamed = update(customers).where(customers.c.id == event.stream)
            connection.execute(renamed.values(name=event.json()["name"]))
        case "Placed":
            placed = event.json()
            row = {"customer": placed["customer"], "cents": placed["cents"], "paid": False}
            connection.execute(insert(orders).values(id=event.stream, **row))
        case "Paid":
            when = {"paid_at": event.timestamp} if model.generation > 1 else {}
            paid = update(orders).where(orders.c.id == event.stream)
            connection.execute(paid.values(paid=True, **when))


def forget(model: SqlReadModel, connection: Connection, removal: Removal) -> None:
    """A customer whose stream is deleted is in no table."""
    if removal.kind != "pruned":
        customers = model.tables["customers"]
        connection.execute(delete(customers).where(customers.c.id == removal.stream))

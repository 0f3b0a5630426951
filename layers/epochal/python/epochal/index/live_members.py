"""Which processes run a reaction outside Lambda, and which partitions each of them takes.

Every process records from time to time that it is alive, and learns from the records of the others who shares the work;
the names alone decide who takes which partition. Two processes may see different records for a while and run the same
partition: the group's state decides between them, so that costs work but breaks nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import TypeVar

from epochal.index.group_state import Unit
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Delete, Put, Query, Steps
from epochal.plan.values import Key, number, read_number, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A sign of life of a process, valid until a time in milliseconds since 1970 unless it is removed."""

    owner: str
    until: int


def write_sign(table: str, group: str, sign: Sign) -> Steps[None]:
    """Record that a process is alive."""
    item = {**_key(group, sign.owner), "o": text(sign.owner), "n": number(sign.until)}
    yield Put(table=table, item=item)


def remove_sign(table: str, group: str, owner: str) -> Steps[None]:
    """Delete a process's sign of life."""
    yield Delete(table=table, key=_key(group, owner))


def read_signs(table: str, group: str) -> Steps[list[Sign]]:
    """Read all signs of life of a group's processes, valid or not."""
    signs: list[Sign] = []
    after: Key | None = None
    while True:
        reply = yield Query(table=table, partition=("p", text(_name(group))), after=after)
        signs += [Sign(owner=item["o"]["S"], until=read_number(item, "n") or 0) for item in reply.items]
        if reply.last is None:
            return signs
        after = reply.last


U = TypeVar("U", int, Unit)


def assign_units(owner: str, owners: Collection[str], units: Iterable[U]) -> list[U]:
    """Return the partitions or shares that one of several processes takes, by rendezvous hashing.

    A process that starts or stops changes only the assignment of its own units.
    """
    return [unit for unit in units if owner == max(owners, key=lambda name: _weight(name, unit))]


def _weight(owner: str, unit: int | Unit) -> bytes:
    """Return the hash by which a process competes for a unit."""
    return hashlib.sha256(f"{unit} {owner}".encode()).digest()


def _name(group: str) -> str:
    """Return the partition key of a group's signs of life."""
    return f"$ReaderMembers-{group}"


def _key(group: str, owner: str) -> Key:
    """Return the key of a process's sign of life."""
    place = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:6], "big")
    return {"p": text(_name(group)), "i": number(place)}

"""Which processes run a reaction outside of Lambda, and which partitions each of them takes.

Every process says now and then that it is alive, and knows from the others' words who shares the work; which partition
is whose follows from the names alone. Views may differ for a while, and two processes then run one partition: the
group's state decides between them, so that costs work and breaks nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from epochal.plan.ops import Delete, Put, Query, Steps
from epochal.plan.values import Key, number, read_number, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A process's sign of life: valid until so many milliseconds since 1970, unless it leaves before."""

    owner: str
    until: int


def give_sign(table: str, group: str, sign: Sign) -> Steps[None]:
    """Say that a process is alive."""
    item = {**_key(group, sign.owner), "o": text(sign.owner), "n": number(sign.until)}
    yield Put(table=table, item=item)


def leave(table: str, group: str, owner: str) -> Steps[None]:
    """Take a process's sign back."""
    yield Delete(table=table, key=_key(group, owner))


def read_signs(table: str, group: str) -> Steps[list[Sign]]:
    """Every sign that is there, whether it is still valid or not."""
    found: list[Sign] = []
    after: Key | None = None
    while True:
        reply = yield Query(table=table, partition=("p", text(_name(group))), after=after)
        found += [Sign(owner=item["o"]["S"], until=read_number(item, "n") or 0) for item in reply.items]
        if reply.last is None:
            return found
        after = reply.last


def share(owner: str, owners: Collection[str], partitions: Iterable[int]) -> list[int]:
    """The partitions that fall to one of several owners. An owner that comes or goes moves only its own."""
    return [each for each in partitions if owner == max(owners, key=lambda name: _weight(name, each))]


def _weight(owner: str, partition: int) -> bytes:
    return hashlib.sha256(f"{partition} {owner}".encode()).digest()


def _name(group: str) -> str:
    return f"$ReaderMembers-{group}"


def _key(group: str, owner: str) -> Key:
    place = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:6], "big")
    return {"p": text(_name(group)), "i": number(place)}

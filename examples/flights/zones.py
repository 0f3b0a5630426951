"""Local times of 2013: what clocks showed at an airport, and the moment in UTC that they meant.

The data set gives each airport's offset in winter and whether it observes daylight saving time. In 2013 all that do
changed at 2 o'clock by their own clocks, on 10 March and 3 November, so no time zone database is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Final

DAYLIGHT_BEGINS: Final = datetime(2013, 3, 10, 2)  # noqa: DTZ001  clocks on a wall have no zone
DAYLIGHT_ENDS: Final = datetime(2013, 11, 3, 2)  # noqa: DTZ001
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """An airport's clocks: `winter` hours from UTC, one more in summer where `daylight` says so."""

    winter: int
    daylight: bool = True

    def of(self, moment: datetime) -> datetime:
        """What the clocks show at `moment`, with their offset."""
        standard = moment.astimezone(timezone(timedelta(hours=self.winter)))
        wall = standard.replace(tzinfo=None)
        if self.daylight and DAYLIGHT_BEGINS <= wall < DAYLIGHT_ENDS - _HOUR:
            return moment.astimezone(timezone(timedelta(hours=self.winter + 1)))
        return standard

    def at(self, wall: datetime) -> datetime:
        """The moment at which the clocks show `wall`: the earlier one of the hour that comes twice in November.

        The hour that March skips is taken for winter time: one landing in it is on record.
        """
        summer = self.daylight and DAYLIGHT_BEGINS + _HOUR <= wall < DAYLIGHT_ENDS
        return wall.replace(tzinfo=timezone(timedelta(hours=self.winter + summer)))

    def next(self, clock: int, after: datetime) -> datetime:
        """The first moment from `after` on at which the clocks show `clock`: 517 is 5:17, and 2400 midnight."""
        hours, minutes = divmod(clock, 100)
        midnight = self.of(after).replace(tzinfo=None, hour=0, minute=0)
        wall = midnight + timedelta(hours=hours % 24, minutes=minutes)
        moment = self.at(wall)
        return moment if moment >= after else self.at(wall + _DAY)


NEW_YORK: Final = Zone(winter=-5)
ATLANTIC: Final = Zone(winter=-4, daylight=False)
"""Puerto Rico and the Virgin Islands, which the data set's list of airports lacks."""

"""A health check of the store: a read of one item that need not exist.

The table is the first one from which the functions may read an item, according to the layouts' permissions.
"""

from __future__ import annotations

from typing import Final

from epochal.deployment import Deployment
from epochal.errors import MissingTable
from epochal.http.answers import answer
from epochal.http.components import Shown
from epochal.http.declarations import operation
from epochal.http.metering import measured
from epochal.http.operation import Request, Response
from epochal.http.query_strings import QueryString
from epochal.layout.registry import layouts_in
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Get
from epochal.plan.values import number, text
from epochal.settings import Settings
from epochal.store.driver import Driver

PROBE: Final = "$Health"
"""Key of the item to read. The item need not exist: the table only has to answer."""

HEALTH: Final = Shown("Health", {"status": {"const": "ok"}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A read of one item, and the driver that sends the read.

    Attributes:
        driver: driver that sends the read.
        read: the read of an item that need not exist.
    """

    driver: Driver
    read: Get


def opened(deployment: Deployment) -> Probe:
    """Return the health probe of a deployment."""
    return Probe(driver=deployment.driver, read=_read(deployment.settings))


@operation(gives=HEALTH)
def check_health(probe: Probe, request: Request, _: QueryString) -> Response:
    """Check whether the store answers.

    Makes one strongly consistent read of the table.
    """
    probe, meter = measured(probe, request)
    probe.driver.ask(probe.read)
    return answer(meter, HEALTH(status="ok"))


def _read(settings: Settings) -> Get:
    """Return a request for one item that `replay` may read; raise `MissingTable` if no table allows it.

    A tenant's functions may read only keys of the tenant, so that the key is made of such a pattern.

    Raises:
        MissingTable: no table allows such a read.
    """
    requests = (
        permission
        for layout in layouts_in(settings)
        for permission in layout.port.access(settings)["replay"]
        if "GetItem" in permission.actions and not permission.index
    )
    access = next(requests, None)
    if access is None:
        raise MissingTable("of events")
    table = access.table
    key = {table.partition.name: text(access.keys[0].replace("*", PROBE) if access.keys else PROBE)}
    if table.sort is not None:
        key[table.sort.name] = text(PROBE) if table.sort.type == "S" else number(0)
    return Get(table=settings.table(table.kind), key=key)

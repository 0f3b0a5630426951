"""What the console reaches beside the store: functions, CloudWatch, reactions of this machine, the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochal.console.lags import Lags
from epochal.dynamo.cloudwatch import Measure
from epochal.reactions.reaction import Reaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Each is optional: a page says what it lacks.

    Attributes:
        prefix: of the names of the deployment's functions.
        reactions: by name, those that replay here, with their own handlers.
        invoke: invokes a function by its name with a payload.
        measure: asks CloudWatch.
        sizes: bytes of tables, by their names, as DynamoDB tells them.
        lags: what the console has seen of the groups that it showed.
        now: nanoseconds since 1970.
    """

    prefix: str = ""
    reactions: Mapping[str, Reaction] = field(default_factory=dict)
    invoke: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    measure: Measure | None = None
    sizes: Callable[[], Mapping[str, int]] | None = None
    lags: Lags = field(default_factory=Lags)
    now: Callable[[], int] = time.time_ns

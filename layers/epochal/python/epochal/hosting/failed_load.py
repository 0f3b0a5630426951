"""A function whose reaction cannot be loaded: a module is missing, or raises while it is imported.

Lambda would end the process before it takes a lease on its wake-ups (`hosting.leases`), and each would wait for the
visibility timeout of its queue. So the function starts all the same, and fails in each run: its wake-ups come again
after a pause, as after other failures. Each run tries to load the reaction again, since what failed may only have been
out of reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epochal.hosting.leases import Leases
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from epochal.hosting.function import Handler


@dataclass(slots=True, kw_only=True)
class FailedLoad:
    """Stands in for the handler of a function that could not be loaded.

    Attributes:
        load: loads the handler, or raises.
        handler: what was loaded; None until then.
    """

    load: Callable[[], Handler]
    leases: Leases
    handler: Handler | None = None

    def handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Answer one event as the handler does, or raise the error with which it cannot be loaded."""
        if self.handler is None:
            try:
                self.handler = self.load()
            except Exception:
                self.leases.put_back(event.get("Records", ()))
                raise
        return self.handler(event, context)

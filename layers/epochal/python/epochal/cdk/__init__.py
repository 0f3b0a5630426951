"""Constructs for AWS CDK: a store of events, and reactions to the store, for any stack.

    from epochal.cdk import EventStore, Reaction

Constructs of an optional package are in its module `cdk`: `epochal.contrib.publish.cdk`. Names are resolved when they
are first used, so that settings of a stage are read without CDK, which starts Node.

store               is the construct of a store
store_options       has the settings of a store by name
reaction            is the construct of a reaction
reaction_code       finds the folder of a reaction's code
declared_reactions  makes the reactions that a stage declares in `cdk.json`
waker               wakes reactions when they are deployed

stages              has the settings of a deployment
stage_rules         says what these settings may hold
coherence           finds settings that contradict each other
stage_changes       changes settings by JSON
rules               has the rules that settings obey, and the error of one that breaks them
arguments           checks the arguments of constructs
placement           refuses a construct outside of the store's account and region

targets             has the target of a deployment
sources             lists the targets: AWS, or the embedded AWS
user_cache          finds the folder of fetched programs and packages
uncaught            prints errors of constructs that nobody catches
parts               are the constructs that stacks are made of
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from epochal.deferred import deferred_names
from epochal.errors import brought_by

if TYPE_CHECKING:
    from epochal.cdk.parts.functions import Network as Network
    from epochal.cdk.reaction import Reaction as Reaction
    from epochal.cdk.store import EventStore as EventStore
    from epochal.cdk.store import Store as Store

_NAMES: Final = {
    "parts.functions": ("Network",),
    "reaction": ("Reaction",),
    "store": ("EventStore", "Store"),
}
_resolve: Final = deferred_names(__name__, _NAMES)

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above


def __getattr__(name: str) -> Any:
    """Import a name of this package when it is first used."""
    with brought_by("cdk", "constructs", "aws_cdk", "constructs"):
        return _resolve(name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Read models in SQL databases."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.contrib.sql.read_models import Fold as Fold
    from epochal.contrib.sql.read_models import FoldRemoval as FoldRemoval
    from epochal.contrib.sql.read_models import SqlReadModel as SqlReadModel
    from epochal.contrib.sql.read_models import SqlReadModels as SqlReadModels

_NAMES = {
    "read_models": (
        "Fold",
        "FoldRemoval",
        "SqlReadModel",
        "SqlReadModels",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Read models: documents that are exactly as up to date as they say.

documents         the read models of a store: fold events into documents, and get them
keys              values of documents by which a model is queried
value_texts       texts of these values, in their order
asking            pages of documents in the order of a key, and counts
generation_heads  the item that says with which keys a generation of a model was built
dropping          deleting a generation of a model
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.read_models.asking import FoundDocument as FoundDocument
    from epochal.read_models.asking import Page as Page
    from epochal.read_models.documents import Documents as Documents
    from epochal.read_models.documents import Fold as Fold
    from epochal.read_models.documents import FoldRemoval as FoldRemoval
    from epochal.read_models.documents import ReadModel as ReadModel
    from epochal.read_models.documents import ReadModels as ReadModels
    from epochal.read_models.dropping import Dropped as Dropped
    from epochal.read_models.keys import DeclaredKey as DeclaredKey
    from epochal.read_models.keys import ModelKeys as ModelKeys
    from epochal.read_models.keys import SecondaryKey as SecondaryKey
    from epochal.read_models.value_texts import Value as Value

_NAMES = {
    "asking": (
        "FoundDocument",
        "Page",
    ),
    "documents": (
        "Documents",
        "Fold",
        "FoldRemoval",
        "ReadModel",
        "ReadModels",
    ),
    "dropping": ("Dropped",),
    "keys": (
        "DeclaredKey",
        "ModelKeys",
        "SecondaryKey",
    ),
    "value_texts": ("Value",),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)

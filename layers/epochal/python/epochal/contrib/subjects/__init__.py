"""Forgetting a person: bodies sealed under keys of their subjects, and the keys destroyed."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.contrib.subjects.items import FORGET_LOG as FORGET_LOG
    from epochal.contrib.subjects.items import SUBJECT_KEYS as SUBJECT_KEYS
    from epochal.contrib.subjects.sealing import Shredded as Shredded
    from epochal.contrib.subjects.sealing import Subjects as Subjects
    from epochal.contrib.subjects.sealing import Wrapping as Wrapping
    from epochal.contrib.subjects.sealing import open_subjects as open_subjects
    from epochal.contrib.subjects.sealing import sealed_codec as sealed_codec
    from epochal.contrib.subjects.testing import memory_subjects as memory_subjects

_NAMES = {
    "items": (
        "FORGET_LOG",
        "SUBJECT_KEYS",
    ),
    "sealing": (
        "Shredded",
        "Subjects",
        "Wrapping",
        "open_subjects",
        "sealed_codec",
    ),
    "testing": ("memory_subjects",),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Marks of snapshots: what a snapshot was made with, and whether a program may use it as the state.

    mark            in the metadata of an unfold, `{"$shape":"0a1b2c3d4e5f","$version":"2"}`; either may be missing
    $shape          the fingerprint of the snapshot's class, if the codec has a class for it
    $version        the version of the rules, if the access strategy has one

A program uses a snapshot only if its mark is the program's own. Any other snapshot is out of date, and the state is
folded from events instead. So it is for a snapshot without a mark, which another program wrote: nothing shows what it
was made with. An upcast shows that a program does understand a snapshot of an older form.

If a decision stores no events that make the state, nothing can replace unfolds, and they have no marks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from epochal.codec import json
from epochal.deciders.codecs import EventCodec, StoredClass
from epochal.deciders.fingerprints import fingerprint_of
from epochal.errors import CorruptData, InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Body
from epochal.model.body_marks import VERSION
from epochal.model.kinds import must_be, must_be_text

SHAPE: Final = "$shape"
"""Member of the metadata of an unfold: the fingerprint of its class."""

RULES: Final = "$version"
"""Member of the metadata of an unfold: the version of the rules that it was made by."""

MAX_VERSION_BYTES: Final = 64
"""Bytes of a version of rules: every append with a snapshot pays for it."""

UNREADABLE: Final = (CorruptData, ValueError, LookupError, TypeError, AttributeError)
"""What a codec raises for a snapshot that it cannot read."""

OTHER_SHAPE: Final = "its class has changed since"
UNMARKED: Final = "it does not say which class and version it was made with"
NOT_READ: Final = "its codec cannot read it"

_LOGGER: Final = logging.getLogger("epochal.deciders")

_warned: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What a snapshot was made with.

    Attributes:
        shape: fingerprint of its class; empty if the codec has no class for it.
        version: version of the rules; empty if the access strategy has none.
    """

    shape: str = ""
    version: str = ""


def check_version(version: object, field: str = "version") -> None:
    """Raise `InvalidInput` unless a value is a version of rules: a short text, empty for none."""
    must_be(str, version, field, "text")
    if version:
        must_be_text(version, MAX_VERSION_BYTES, field)


def mark_of(codec: EventCodec[Any], kind: str, version: str) -> Mark:
    """Return the mark that a program gives to snapshots of a stored type."""
    stored_class = codec.classes.get(kind)
    return Mark(shape="" if stored_class is None else fingerprint_of(stored_class.kind), version=version)


def marked(meta: Body, mark: Mark) -> Body:
    """Return metadata with a mark added, if empty or a JSON object; else as they are, or raise.

    Raises:
        InvalidInput: they are no JSON object, and a version must be stored.
    """
    members = {name: text for name, text in ((SHAPE, mark.shape), (RULES, mark.version)) if text}
    if not members:
        return meta
    if meta == b"":
        return json.dumps(members)
    own = _object(meta)
    if own is None and mark.version:
        rule = "cannot be stored, because this codec writes snapshots whose metadata are no JSON object"
        raise InvalidInput("version", rule)
    return meta if own is None else json.dumps({**own, **members})


def takes_no_mark(meta: bytes) -> bool:
    """Return whether metadata are the codec's own, with no place for a mark."""
    return meta != b"" and _object(meta) is None


def without_mark(meta: bytes) -> tuple[Mark | None, bytes]:
    """Split metadata into the mark, None without one, and the metadata as the codec wrote them."""
    if b'"$' not in meta:
        return None, meta
    own = _object(meta) or {}
    shape, version = own.pop(SHAPE, ""), own.pop(RULES, "")
    if not shape and not version:
        return None, meta
    return Mark(shape=str(shape), version=str(version)), json.dumps(own) if own else b""


def mismatch(stored: Mark | None, own: Mark, *, trusted: bool) -> str | None:
    """Explain why a program does not use a snapshot with this mark; None if it does.

    Args:
        trusted: whether a snapshot without a mark is used.
    """
    if stored is None and trusted and not own.version:
        return None
    if own.version != ("" if stored is None else stored.version):
        was = f"by version {stored.version!r}" if stored and stored.version else "by no version"
        return f"it was made {was} of the rules, but the current version is {own.version!r}"
    if not own.shape:
        return None
    if stored is None or not stored.shape:
        return None if trusted else UNMARKED
    return None if stored.shape == own.shape else OTHER_SHAPE


def is_upcast(stored_class: StoredClass | None, data: bytes) -> bool:
    """Return whether upcasts convert a snapshot from an older version of its type."""
    if stored_class is None or not stored_class.versions.steps:
        return False
    try:
        value = json.loads(data)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get(VERSION, 1) != stored_class.versions.current


def warn_once(kind: str, why: str) -> None:
    """Log that a kind of snapshot is not used, once for each kind and reason."""
    if (kind, why) not in _warned:
        _warned.add((kind, why))
        _LOGGER.warning(
            "a snapshot of %s is not used: %s. States are made from events until an append stores a new snapshot; "
            "this is logged once",
            kind,
            why,
        )


def remedy(kind: str, why: str) -> str:
    """Explain, for an error, what to do if no events can replace an unused snapshot."""
    trust = ", or trust_unmarked=True once you know that its class is the same" if why == UNMARKED else ""
    return (
        f"they would stand in for the snapshot of {kind}, which is not used: {why}. Use the class and the version that "
        f"it was made with{trust}; give a changed class of snapshots a new name beside the old one, or an upcast"
    )


def _object(meta: Body) -> dict[str, Any] | None:
    """Parse metadata as a JSON object; return None if they are not one."""
    if not isinstance(meta, bytes):
        return None
    try:
        value = json.loads(meta)
    except ValueError:
        return None
    return dict(value) if isinstance(value, Mapping) else None

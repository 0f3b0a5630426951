"""States of projections as JSON, each in the plainest form that loses nothing and has room:

"state": …          it is JSON: shown as it is stored, to the byte
"state64": "…"      it is not: base64
"stateGzip64": "…"  it is too large for an answer, its compressed form is not: gzip, in base64
"stateUrl": {…}     it is too large for an answer and is in the bucket: where to fetch it, for how long, and how large
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

from simplejson import RawJSON

from epochal.errors import InvalidInput
from epochal.http import bodies
from epochal.http.answer_size import AnswerSize, capacity
from epochal.http.bodies import LINK_SECONDS
from epochal.http.operation import Request
from epochal.model.projections import StoredState
from epochal.plan.units import Units
from epochal.store.projections import check_names

Content = Callable[[], Iterator[bytes]]
"""Opens a state, which comes a chunk at a time."""


Link = Callable[[str, int], str]
"""Signs a URL that an object can be fetched from for so many seconds; raises `MissingBody` where there is none."""

MOST_SHOWN: Final = 3 * 1024 * 1024
"""Bytes of a state that an answer has room for in base64, which adds a third."""


def written(name: str, version: str, events_processed: int, units: Units) -> dict[str, Any]:
    """The answer to a write."""
    return {
        "name": name,
        "version": version,
        "eventsProcessed": events_processed,
        "capacity": capacity(units),
    }


def described(found: StoredState) -> dict[str, Any]:
    """What is known of a state, without it."""
    window = {} if found.safe_window is None else {"safeWindow": found.safe_window}
    return {
        "name": found.projector,
        "version": found.version,
        "eventsProcessed": found.events_processed,
        "lastSortableId": found.last_sortable_id or None,
        **window,
        "bytes": found.original_bytes,
        "compressedBytes": found.compressed_bytes,
    }


def shown(found: StoredState, content: Content, link: Link) -> dict[str, Any]:
    """A state, or where it is. It is opened only where there may be room for it."""
    return {**described(found), **_members(found, content, link)}


def whole(found: StoredState, state: bytes) -> dict[str, Any]:
    """A state, however large it is."""
    text = bodies.json_text(state)
    plain = {"state64": b64encode(state).decode()} if text is None else {"state": RawJSON(text)}
    return {**described(found), **plain}


def tag_of(found: StoredState) -> str:
    """What tells a state from all others of its version: the ETag, without quotes."""
    exact = f"{found.events_processed}|{found.last_sortable_id}|{found.inline or found.offload_key}"
    return hashlib.sha256(exact.encode()).hexdigest()[:32]


def _members(found: StoredState, content: Content, link: Link) -> dict[str, Any]:
    if found.original_bytes <= MOST_SHOWN:
        state = _within(content())
        if state is not None:
            return _plain(state)
    if found.offload_key is None:
        return {"stateGzip64": found.inline}
    url = link(found.offload_key, LINK_SECONDS)
    return {
        "stateUrl": {
            "url": url,
            "expiresIn": LINK_SECONDS,
            "bytes": found.compressed_bytes,
            "encoding": "gzip",
        }
    }


def _within(content: Iterator[bytes]) -> bytes | None:
    """The whole state; None where there is no room for it, since it is larger than its item says."""
    read = bytearray()
    for chunk in content:
        read += chunk
        if len(read) > MOST_SHOWN:
            return None
    return bytes(read)


def _plain(state: bytes) -> dict[str, Any]:
    text = bodies.json_text(state)
    view = None if text is None else AnswerSize().fit(RawJSON(text))
    return {"state64": b64encode(state).decode()} if view is None else {"state": view}


def path_of(request: Request) -> tuple[str, str]:
    """The path's projection and its version."""
    name, version = request.path["name"], request.path["version"]
    check_path(name, version, "version")
    return name, version


def check_path(name: str, version: str, version_field: str) -> None:
    """Refuse by the store's own rules, in the names of the path's parameters."""
    try:
        check_names(name, version)
    except InvalidInput as error:
        raise InvalidInput("name" if error.field == "projector" else version_field, error.rule) from error

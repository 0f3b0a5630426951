"""Timers of copies: a `$timer-set` is marked in its copy, where it does not fire; its original does.

What is copied, or imported, may live on where it came from, and a timer fires once. So the copy's setting has
`"copied": true` at the beginning of its body, before the very bytes that the original has. It waits there until it is
taken over (`timers.care.take_over`), which sets it anew, or until the copy gets the `$timer-fired` of its original.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from epochal.model.events import TIMER_SET, Claim, Event

_OPENED: Final = b'{"copied":true,'


def marked(event: Event) -> Event:
    """The event, as its copy has it. One that sets no timer is the same."""
    if event.type != TIMER_SET or isinstance(event.data, Claim) or event.data != unmarked(event.data):
        return event
    return replace(event, data=event.data.replace(b"{", _OPENED, 1))


def unmarked(body: bytes) -> bytes:
    """The body of a setting, as its original has it."""
    before, opened, rest = body.partition(_OPENED)
    return body if before.strip() or not opened else before + b"{" + rest

"""Disables the garbage collector during a cold start.

The imports make a hundred thousand objects and next to no garbage; collecting again and again takes a seventh of a cold
start. Importing this module first disables the collector. `over` enables it, and keeps it from scanning the imported
objects, which live as long as the process does.
"""

from __future__ import annotations

import gc

gc.disable()


def over() -> None:
    """Enable the garbage collector after the imports; it never scans the imported objects."""
    gc.freeze()
    gc.enable()

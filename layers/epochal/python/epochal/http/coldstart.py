"""The garbage collector's part in a cold start: none.

Importing makes a hundred thousand objects and next to no garbage; looking for it time and again takes a seventh of a
cold start. Importing this module first pauses the collector, and `over` lets it go on, without ever again looking at
what the imports made: it stays for as long as the process does.
"""

from __future__ import annotations

import gc

gc.disable()


def over() -> None:
    """Enable the garbage collector after the imports; it never scans the imported objects."""
    gc.freeze()
    gc.enable()

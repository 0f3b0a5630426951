"""The `journal` layout (event-store-adapter's): a journal of events, an item each, and a snapshot as their head.

FORMATS §2 has the bytes. The rules in short:

- The head is the snapshot with number 0. Every append raises its `version`, in one transaction with its events.
- Events are numbered from 1 without holes, and never change.
- The original libraries share the tables. What they do not write, we do without (`head_version` tells who wrote last).
"""

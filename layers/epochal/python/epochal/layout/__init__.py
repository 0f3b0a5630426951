"""Layouts: streams as items and back. Each plans requests and interprets replies; none performs one.

streams    what the store asks of a layout, and how an append of it can end
queries    what fences a query, what it matches, and reading that a part at a time
once       appends and decisions under an idempotency key
port       what the feed, care and a deployment ask of a layout
registry   which layouts a deployment has
subjects   the keys that bodies are sealed with
pages      Epochal's own
"""

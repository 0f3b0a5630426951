"""Decisions: states folded from typed events, and the loop that decides on them until its append is stored."""

"""Copying streams to another layout or deployment: one, or everything in a feed, each held to its original."""

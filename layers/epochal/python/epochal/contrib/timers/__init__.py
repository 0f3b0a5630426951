"""Timers: appends in the future."""

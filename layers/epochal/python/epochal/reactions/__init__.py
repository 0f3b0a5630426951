"""Reactions: functions called with every event, in order within a stream, and how far each group has come."""

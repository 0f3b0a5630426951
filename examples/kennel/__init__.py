"""An application of the `eventsourcing` library's, moved from SQLite to Epochal by one setting."""

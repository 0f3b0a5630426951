"""The feed: all events of all streams, read from the index and from their stores."""

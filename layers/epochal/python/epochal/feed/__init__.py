"""The feed: reading the index forward, and the events that it tells of."""

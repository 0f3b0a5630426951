"""The feed: the indexer that writes it, and readers that walk it."""

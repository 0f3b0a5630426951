"""Running reactions: as Lambda functions that a queue wakes, and as processes that take turns."""

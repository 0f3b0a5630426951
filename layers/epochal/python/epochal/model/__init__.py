"""The vocabulary: streams, events, unfolds, versions, outcomes. Plain values."""

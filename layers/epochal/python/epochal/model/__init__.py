"""The vocabulary: streams, events, unfolds, versions, outcomes. Plain values without behaviour of their own."""

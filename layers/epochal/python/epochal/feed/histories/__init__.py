"""The history of each layout: events as the feed shows them, from their stores."""

"""Tagged events in the pages layout: each tag is a stream (FORMATS §8)."""

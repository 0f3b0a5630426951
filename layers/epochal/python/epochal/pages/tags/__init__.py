"""Tagged events as pages: a tag is a stream (FORMATS §8)."""

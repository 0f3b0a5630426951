"""The layout `pages`: a stream is a chain of small items; an append adds a frame to the last (FORMATS §8)."""

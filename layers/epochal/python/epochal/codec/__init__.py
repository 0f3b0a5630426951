"""Bodies in their stored form, and JSON that loses nothing.

bodies  encodings of bodies: direct, compressed, or as claim checks
json    JSON that keeps numbers and names as they were
"""

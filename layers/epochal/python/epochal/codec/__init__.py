"""Bodies in their stored form, and JSON that loses nothing.

bodies         encodings of bodies: direct, compressed, or as claim checks
bucket_bodies  the choice of bodies that leave the item for the bucket
json           JSON that keeps numbers and names as they were
"""

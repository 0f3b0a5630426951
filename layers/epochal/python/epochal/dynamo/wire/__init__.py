"""Requests to AWS without botocore: signatures of version 4, HTTP/1.1, and what the environment says."""

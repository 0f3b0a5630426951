"""Requests to AWS without botocore: version 4 signatures, HTTP/1.1, and configuration by environment."""

"""Aggregates over HTTP.

operations      aggregates as JSON, and the operations: each declares what it takes, performs it and shows the outcome
routes          the operations, which are read in a cold start
"""

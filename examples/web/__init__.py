"""Carts over HTTP, with FastAPI."""

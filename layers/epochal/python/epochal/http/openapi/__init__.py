"""The API as an OpenAPI 3.1 document, made of the tables that serve it: routes, limits, problems.

    python -m epochal.http.openapi > docs/reference/openapi.json

The document is committed; a test compares it, and every other test of the API holds each answer to it. Nothing on the
way of a request imports this.
"""

"""The HTTP API: a module for each resource, over a kernel that they share.

    operation           the record of an operation; a request and a response, as plain values
    routes              the records of all operations: what the gateway, the stacks and the OpenAPI document read
    streams, tagged, feed, health                   the functions that perform operations, with their declarations
    events              events as JSON: readers, views and schemas; and the size of an answer
    declarations        the decorator that declares a function as an operation
    schemas, components, parameters                 the parts of these declarations
    nodes, documents, query_strings                 readers of requests: every refusal names the field and the rule
    preconditions, idempotency                      If-Match, If-None-Match and Idempotency-Key
    metering, answers                               a store for one request, and its answer with its cost
    problems            every error as an RFC 9457 document
    gateway             the Lambda handler, with logs and metrics; the only module that knows AWS Lambda
    openapi             the OpenAPI documents; no module that serves requests imports it
    client_profile, openapi_3_0                     documents for generators of clients, without rules between fields

Parsing and rendering are pure. This module imports nothing, so that stacks can read `operation` without the rest.
"""

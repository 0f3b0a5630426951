"""The HTTP API: a module for each resource, over a kernel that they share.

    operation           the records of all operations: what the gateway, the stacks and the OpenAPI document read; a
                        request and a response, as plain values
    streams, tagged, feed, health                   what performs the operations, and declares what they take and answer
    events              events as JSON: read, shown and described; and how much fits an answer
    declarations        the decorator that declares a function as an operation
    schemas, components, parameters                 the words of these declarations
    nodes, documents, query_strings                 what was sent: every refusal names the field and the rule
    preconditions, idempotency                      If-Match, If-None-Match and Idempotency-Key
    metering, answers                               a store for one request, and its answer with what it cost
    problems            every error as an RFC 9457 document
    gateway             what runs them on a deployment, logs and metrics; the only module that knows AWS Lambda
    openapi             the documents; nothing on the way of a request imports it
    client_profile, openapi_3_0                     documents for generators of clients, made from that of rules

Parsing and showing are pure. Nothing is imported here, so that stacks can read `operation` without the rest.
"""

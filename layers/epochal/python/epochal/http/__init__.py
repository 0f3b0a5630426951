"""The HTTP API: a folder for each resource, over a kernel that they share.

    streams, aggregates, tagged, projections, feed
        one resource each: its operations as records, how its values are written as JSON, and what performs the
        operations, each of which parses its request and shows its outcome
    operations          all records: what the gateway, the stacks and the OpenAPI document read
    operation           what a record is; a request and a response, as plain values
    deployment          what operations run on
    fields, document, query, preconditions      parsing: every refusal names the field and the rule
    bodies, answer_size                         stored bodies in an answer, and how much fits one
    problems            every error as an RFC 9457 document
    gateway, transport  API Gateway, logs and metrics around them; the only modules that know AWS Lambda
    openapi             the document; nothing on the way of a request imports it, or what resources say for it

Parsing and showing are pure. Nothing is imported here, so that stacks can read `operations` without the rest.
"""

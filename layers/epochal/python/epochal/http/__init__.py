"""The HTTP API: a module for each resource, over a kernel that they share.

    operations          the records of all operations: what the gateway, the stacks and the OpenAPI document read
    operation           what a record is; a request and a response, as plain values
    streams, tagged, feed, projections, health      what performs the operations, and declares what they take and answer
    stream_shapes, tagged_shapes, projection_shapes         their values as JSON: read, shown and described
    shapes              the words of these declarations
    fields, preconditions       parsing: every refusal names the field and the rule
    bodies              stored bodies in an answer, and how much fits one
    problems            every error as an RFC 9457 document
    performers          how operations run on a deployment, each measured
    gateway             API Gateway, logs and metrics around them; the only module that knows AWS Lambda
    openapi             the document; nothing on the way of a request imports it

Parsing and showing are pure. Nothing is imported here, so that stacks can read `operations` without the rest.
"""

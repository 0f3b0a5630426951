"""The HTTP API: requests parsed into commands, commands run on a store, outcomes and errors as responses.

    routes       which method and path is which operation, of which function: shared with stacks and documentation
    message      a request and a response, as plain values
    fields, document, query, preconditions, events      parsing: every refusal names the field and the rule
    commands     what each operation asks for
    views        events, states and pages as JSON
    locks        preconditions of aggregates
    room         how much fits an answer
    problems     every error as an RFC 9457 document
    writing, reading, feeding      the operations themselves
    aggregating, aggregate_commands, aggregate_views      the same for aggregates
    tagging, tagged_commands, tagged_views      the same for tagged events
    projecting, projection_commands, projection_views      the same for states of projections
    deferred, dcb      the last two, imported at their first request
    gateway      API Gateway, logs and metrics around them; the only module that knows AWS Lambda
    openapi      the same tables as an OpenAPI document

Parsing and views are pure. Nothing is imported here, so that stacks can read `routes` without the rest.
"""

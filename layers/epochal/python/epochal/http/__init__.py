"""The HTTP API: a module for each resource, over a kernel that they share.

    operation           the record of an operation; a request and a response, as plain values
    routes              the records of all operations: what the gateway, the stacks and the OpenAPI document read
    streams, several, bulk_appends, tagged, feed, whole_feed, groups, health
                        the functions that perform operations, with their declarations
    sent_events, appends, tagged_requests           readers of requests, and their schemas
    events, feed_items, stream_views, tagged_views, tag_views
                        views for answers, and their schemas
    bodies              bodies of events, as they are sent and shown
    checked             checks of events against JSON Schemas
    tag_pages           pages of the tags and events that are listed
    event_fields, stream_fields                     schemas of fields that several of these have
    answer_size         how much an answer may hold
    declarations        the decorator that declares a function as an operation
    schemas, components, parameters                 the parts of these declarations
    nodes, documents, query_strings                 readers of requests: every refusal names the field and the rule
    preconditions, idempotency                      If-Match, If-None-Match and Idempotency-Key
    metering, answers                               a store for one request, and its answer with its cost
    problems, stream_problems                       every error as an RFC 9457 document
    gateway, gateway_requests, gateway_log          the Lambda handler: all that knows AWS Lambda
    coldstart           disables the garbage collector during a cold start
    openapi             the OpenAPI documents; no module that serves requests imports it
    client_profile, openapi_3_0                     documents for generators of clients, without rules between fields

Parsing and rendering are pure. This module imports nothing, so that stacks can read `operation` without the rest.
"""

"""Layouts, which store streams as items. A layout plans requests and interprets replies; it sends none.

streams        the interface of a layout to the store, and what an append is
tag_streams    the table of tagged events, and the tags that have streams there
tagged_batch   the tagged events of an append
outcomes       the results of an append, as a layout returns them
queries        the tags that fence a query, and the events that it matches
query_reads    reading the matches of a query, a part at a time
once           appends under an idempotency key
decision_keys  decisions under an idempotency key
key_records    the records of idempotency keys, as they are stored
key_moments    the moment in a key that ends with a UUIDv7
giving_way     pauses of writers that were refused
port           the interface of a layout to the feed, care and a deployment
source         the interface of a layout to the indexer
changes        changes of a stream, in the form that the feed gets
healing        reads events from the store that no stream record reported
categories     which streams belong together
stored_items   items of a stream, with their cost
registry       the layouts of a deployment, and the partitions of each
tables         the tables of a deployment
"""

"""Layouts: streams as items and back. Each plans requests and interprets replies; none performs one.

streams        what the store asks of a layout, and what an append is
outcomes       how a layout answers an append
queries        what fences a query, and what it matches
query_reads    reading the matches of a query, a part at a time
once           appends under an idempotency key
decision_keys  decisions under an idempotency key
key_records    the records of idempotency keys, as they are stored
key_moments    the moment in a key that ends with a UUIDv7
giving_way     pauses of writers that were refused
port           what the feed, care and a deployment ask of a layout
source         what the index asks of a layout
changes        what happened to a stream, as the feed gets it
healing        reading from the store what no image of a head reported
categories     which streams belong together
stored_items   items of a stream, with their cost
registry       which layouts a deployment has, and which partitions are theirs
tables         the tables of a deployment
"""

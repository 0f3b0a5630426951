"""Plans: what to ask of DynamoDB, what came back, and what it costs, as plain values. No I/O.

ops                  operations and replies
batches              many keys, and requests side by side
conditions, effects  conditions on an item; what a write does to one
values               attribute values, and how many bytes they take
tables               keys, indexes and streams of a table
limits, costs        what DynamoDB would refuse, and what a plan costs, before it is sent
failures             how a request can fail without an answer
"""

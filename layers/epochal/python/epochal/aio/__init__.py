"""The stores for asynchronous programs: the same plans and promises, awaited (docs/guide/async.md).

stores  streams, tagged events, the feed, read models and deciders, awaited
bridge  runs blocking code in an event loop without blocking the loop
"""

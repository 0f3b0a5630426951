"""The stores for asynchronous programs: the same plans and promises, awaited (docs/guide/async.md)."""

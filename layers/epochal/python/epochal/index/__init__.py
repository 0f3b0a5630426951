"""The index: which events were appended, in what order, as chains of epochs. Pure code that performs no requests.

An epoch `$AppendsEpoch-<partition>_<epoch>` is a stream of the `tips` layout in a table of its own, so it
obeys the same rules as any other (DESIGN §5.7). FORMATS §4 has the bytes.
"""

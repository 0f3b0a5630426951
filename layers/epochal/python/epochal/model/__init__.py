"""The vocabulary, as plain values. In the order of reading:

events     events and unfolds, their bodies, and the names of streams
versions   what a writer expects of a stream, tokens, positions, and how an append can end
tags       tags, queries, and what reads of them answer
spans      what a layout tells of a stream
times      time to the 100 ns
kinds      checks of what a caller hands in
"""

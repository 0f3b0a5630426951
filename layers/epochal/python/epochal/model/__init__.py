"""The vocabulary of the library, as plain values. In reading order:

events        events and unfolds
bodies        their bodies: bytes, or claims on objects in the bucket
moments       times to 100 ns
stream_names  names of streams, and those that the system reserves
plain_json    bodies that are plain JSON
body_marks    members by which the library marks objects of JSON
versions      what a writer expects of a stream, tokens, positions, and how an append can end
tags          tags, queries, and what reads of them return
kinds         checks of arguments that callers pass in
quantities    numbers with their nouns, for messages
opaque_text   withholding text that nobody can read
seal_search   finding sealed bodies inside other bodies
"""

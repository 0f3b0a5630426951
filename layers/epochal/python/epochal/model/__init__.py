"""The vocabulary of the library, as plain values. In reading order:

events            events and unfolds
bodies            their bodies: bytes, or claims on objects in the bucket
moments           times to 100 ns
stream_names      names of streams, and those that the system reserves
plain_json        bodies that are plain JSON
negative_zero     the integer -0 in JSON
body_marks        members by which the library marks objects of JSON
tokens            the exact state of a stream, with which its next append is one request
expected_version  what a writer expects of a stream
stream_append     the append to one stream of several
positions         how far a read of tagged events has seen each tag
capacity          the DynamoDB capacity that a call consumed
outcomes          how an append can end
tags              tags and queries
timers            timers whose events are of a domain
position_text     the text form of positions in tagged events
tag_answers       the answers to reads of tagged events and listings of tags
kinds             checks of arguments that callers pass in
plain_functions   checks of functions that callers pass in
quantities        numbers with their nouns, for messages
opaque_text       withholding text that nobody can read
base85            what a text in base85 may hold
seal_search       finding sealed bodies inside other bodies
"""

"""The vocabulary of the library, as plain values. In reading order:

events       events, unfolds and their bodies, times to the 100 ns, and stream names
versions     what a writer expects of a stream, tokens, positions, and how an append can end
tags         tags, queries, and what reads of them return
kinds        checks of arguments that callers pass in
quantities   numbers with their nouns, for messages
opaque_text  withholding text that nobody can read
seal_search  finding sealed bodies inside other bodies
"""

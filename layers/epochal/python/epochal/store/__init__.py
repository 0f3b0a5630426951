"""Stores: they run layouts' plans on an interpreter, retry what may be retried, and answer in the model's terms.

What programs call:

    streams            streams by name: append, load, read, prune, delete
    tagged             events by their tags: queries, and appends under a query
    bulk, joined       many appends in one call; writers of one process in one write
    listings           all events, tags and groups that a store of tagged events has
    tagged_importer    a history into tagged events
    context            metadata of all that is appended within a block; new keys

What these are built of:

    appending          appends to several streams, with tags, under a query, or with items of the caller's own
    also               writes to the caller's own tables, in the transaction of an append
    answers, outcomes  what a layout answers, as outcomes; outcomes as errors
    reading, earlier   reads of a stream: as it is, and as it was
    unopened           the head of a stream, whose bodies are opened when a caller asks for them
    encoding           events and unfolds as they are stored, and back
    seals              what lets a token from outside begin a page without a read
    driver             performs plans: waits, retries, and remembers writes whose outcome is unknown
    plugin             the plug-in of pages, for the list of layouts
"""

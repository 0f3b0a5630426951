"""The stores that programs call. A store runs the steps of its layout on an interpreter, with retries.

Programs use these modules:

    streams            appends to named streams, and loads, reads, prunes and deletes them
    tagged             appends tagged events, also under a condition, and reads them by queries
    bulk, joined       makes many appends in one call; joins concurrent appends of one process in one write
    listings           lists all events, tags and groups of a store of tagged events
    tagged_importer    imports a history into tagged events
    context            adds metadata to all events that are appended within a block; makes idempotency keys

These are built on:

    appending          appends to several streams, of tagged events, under a condition, or with writes to other tables
    also               makes and checks writes to the caller's own tables in the transaction of an append
    answers, outcomes  converts a layout's answers to outcomes, and outcomes to errors
    reading, earlier   reads the current events of a stream; loads its state at an earlier version or moment
    unopened           holds the head of a stream, whose bodies are decoded when a caller asks for them
    encoding           encodes events and unfolds for storage, and decodes them
    seals              signs tokens, so that one from outside can begin a page without a read
    driver             performs operations with retries, and remembers writes whose outcome is unknown
    plugin             registers the pages layout
"""

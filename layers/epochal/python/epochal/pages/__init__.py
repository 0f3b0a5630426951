"""The pages layout: each stream is a chain of pages, and each tag is a stream. Read the modules in this order:

frames         encodes the events of an append as a frame, and decodes them
items          encodes a page as an item, with its etag and token
reading        reads the last page of a stream, and the events forward or backward
batch          encodes the batch of one append, once for all its tries
fullness       decides whether a page is full
writes         plans the writes of an append
attempts       makes one attempt to append
evidence       decides whether an append was applied, if its answer was lost or another process may have made it
appending      appends to one stream, and retries
joined         makes several appends to one stream in one write
identified     finds out whether events with ids were appended before
commit         writes to several streams, all or nothing
several_key    stores the outcome of an append to several streams under its idempotency key
streams_part   appends to named streams, as a part of a commit
keyed_appends  appends to one stream under an idempotency key
several        appends to several streams, and commits decisions on them
tags/entries   encodes the label of a tagged event, and finds its body
tags/batch     splits the events of an append among the streams of their tags
tags/ids       finds events by ids, and recognizes an append that was made before
tags/append    appends tagged events, and events under a condition
tags/mixed     appends to named streams and to tags, all or nothing
tags/reading   reads the events that match a query
tags/listing   lists the tags, and the events of a tag after a place
pruning        prunes, deletes and archives streams
port           tells the feed what a write to a page changed
layout         defines `Pages`, the class whose methods a store calls
"""

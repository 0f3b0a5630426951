"""Streams as chains of pages, and tags as streams. In the order of reading:

frames         the events of an append as bytes, and back
items          a page as an item; its etag and its token
reading        the last page, and a stream from either end
batch          a batch of one append, packed
fullness       when a page is full
writes         the writes that append a batch, and one attempt to append it
evidence       was an append applied, whose answer was lost, or that another process may have made?
appending      one append to the last page, and what can come back of it
joined         several appends to the end of one stream as one write
identified     appends of events whose ids were appended before
commit         writes to several streams, all or nothing
several        appends to several streams, decisions on them, and appends under a key
tags/entries   what an event of a tag says of itself
tags/append    appends that a query may forbid, and those of streams whose events have tags
tags/reading   what a query matches; a tag's events
pruning        emptying pages, ending streams, archives
port           pages as the feed sees them
layout         what the store asks of the layout
"""

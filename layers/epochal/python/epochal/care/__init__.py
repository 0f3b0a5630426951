"""Care of the index: status, verification, repair, rebuild, the auditor, what is in quarantine, and the tables.

status               shows the state of an index
verify               finds what is wrong with an index
repair               mends what `verify` finds, in place
rebuild              builds an index anew in another table
mender               brings an index up to the heads
heads                reads heads from a table
head_comparison      compares heads with the index by a few requests

auditor              audits the index a bit at a time, for ever
audit_cursor         stores how far the auditor has got
arrivals             counts events by the time at which they came
quarantined          lists, retries and discards records in quarantine
retention            prunes streams of a category by count and age
retention_preview    counts what rules of retention would prune

torn                 has what a replica got in part, and what to do about it
torn_pages           finds pages that were replicated in part
torn_keys            finds records of idempotency keys whose appends were replicated in part
partial_replication  mends what was replicated in part

table_creation       creates tables
table_exports        reads exports of tables
spool                sorts the events of an export, outside of memory
spooled_tables       answers reads from exports
stream_search        searches tables for names of streams
prices               has what AWS asks for what a store uses
"""

"""Sustained mixed load against a deployment on the embedded AWS, or a stage on AWS, over its HTTP API: `make load`.

    crew            threads: writers of all layouts on shared and own streams, a reader, a follower of each partition
    ledger          what was sent, and what was answered to it
    measures        statuses, seconds and units of every request; seconds from an answer to the feed
    verification    what is stored, and what the feed has, against the ledger
    reaction        deployed beside it; keeps how far each stream has come, and whether anything was skipped

Figures are those of this machine, which plays DynamoDB, Lambda and the clients at once: they compare two versions of
Epochal, and say nothing of AWS. The verification is what a run is for.
"""

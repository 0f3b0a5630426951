"""The index: which events were appended, in what order, as chains of epochs. Pure code that performs no requests.

An epoch `$AppendsEpoch-<partition>_<epoch>` is a stream of the `tips` layout in a table of its own, so it
obeys the same rules as any other (DESIGN §5.7). FORMATS §4 has the bytes. Read the modules in this order:

checkpoints       names the index's streams, and encodes positions in a partition
tip               encodes a stream of the index: its Tip and calves
calf_costs        decides when events leave a Tip
wire_batch        encodes one append, and the ids by which it is recognized
tip_writes        plans the writes of an append, and the token that each leaves
tip_append        appends to a stream of the index
entries           encodes the entries of epochs: what one batch of changes appended
epochs            folds entries to the state of an epoch, and decides what a batch adds
epoch_loading     reads epochs, whole or from a version on
series            has the epoch that each partition has reached, and the partitions of each source
marks             has the next index of streams that a partition's newest epochs no longer name
crowding          tells how crowded a partition is, and how long an indexer rests
ingestion         indexes a batch with one write
indexer_failures  records why indexers fail
feed_walk         walks a partition from a checkpoint, forward or backward
moments           finds the place of a moment in a partition
chain_check       walks a whole partition, however broken, and reports what is wrong with it
followed_streams  follows streams through a partition in bounded memory
group_state       is the progress of a consumer group in one partition, as a value
groups            stores this progress
parking_causes    stores why streams were parked
failed_runs       stores the last failed run of each member of a group
live_members      stores which processes outside Lambda run a reaction
"""

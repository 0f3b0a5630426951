"""What Epochal costs and how fast it is, measured on the real library and held to bounds.

    calving      the calving rule against the offline optimum          memory interpreter, real sizes and units
    capacity     write units of single appends                         DynamoDB Local
    workloads    whole workloads beside recorded figures of rivals     DynamoDB Local
    replay       memory and speed of reading 100,000 events            DynamoDB Local
    page-replay  read units of a replay of pages, and its speed         memory interpreter, DynamoDB Local
    telemetry    1,000 events a second to one stream, joined           memory interpreter, modelled time
    indexing     the indexer's speed and price                         memory interpreter
    catching-up  reading an index, and its events, beside boto3        DynamoDB Local
    reacting     a group that handles a feed, beside boto3             DynamoDB Local
    hot-stream   writers on one stream, in one process and in several   memory interpreter, simulated time
    tagging      write units and requests of tagged events             the library's arithmetic on its plans
    tag-races    tagged events under contention, and in bulk           DynamoDB Local
    imports      cold starts of the functions                          fresh processes

Run all with `make bench`, or some with `python -m bench calving replay`. docs/reference/cost.md has the figures.
"""

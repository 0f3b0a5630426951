"""The promises, proven in one's own account: checks of a deployed stage, each a claim, a price and a verdict.

    commands         `epochal prove`
    proof            what checks share, how they are run, and the report
    store            appends, the feed, uploads, a catch-up, quarantine
    updating         a setting that is changed on a deployed stage while appends go on
    catching_up      how far a reaction has got
    writers          one stream of each layout, through the library or over HTTP
    signed_http      requests to a deployed HTTP API
    deployed_stacks  the stacks of a stage, as CloudFormation has them

Whatever a check writes has the category `EpochalProof` and the proof's marker in its name.
"""

"""The promises, proven in one's own account: checks of a deployed stage, each a claim, a price and a verdict.

    proof      what checks share, how they are run, and the report
    writers    a stream of any layout, through the library or over HTTP
    store      appends, the feed, uploads, a catch-up, quarantine
    stacks     where that is found

Whatever a check writes has the category `EpochalProof` and the proof's marker in its name.
"""

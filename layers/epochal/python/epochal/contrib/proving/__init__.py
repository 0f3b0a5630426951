"""The promises, proven in one's own account: checks of a deployed stage, each a claim, a price and a verdict.

    commands       `epochal prove`
    proof          what checks share, how they are run, and the report
    store          appends, the feed, uploads, a catch-up, quarantine
    updating       a setting that is changed on a deployed stage while appends go on
    catching_up    how far a reaction has got

Whatever a check writes has the category `EpochalProof` and the proof's marker in its name.
"""

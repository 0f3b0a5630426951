"""Constructs for AWS CDK: a store of events, and the reactions that it feeds, in anyone's stacks."""

"""Reactions to try: `epochal react examples.reactions.boards:prices`."""

"""The `dcb` layout (Sekiban's): events under their ids, an entry for each of their tags, and a head for each tag.

FORMATS §3 has the bytes, DESIGN §5.12 the reasons. The rules in short:

- A tag's head counts its events. Every append moves the heads of all tags of its events, in the same transaction.
- An event's sortable id exceeds those of all earlier events of its tags, whatever the writers' clocks say.
- A condition is a set of heads that must not have moved. Each query item needs only one: a match moves them all.
- Where a head has moved, the events beyond the position are read: only a match is a conflict.
"""

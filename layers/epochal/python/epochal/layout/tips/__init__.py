"""The `tips` layout (Equinox DynamoStore's): a Tip that takes every append, and calves that never change.

FORMATS §1 has the bytes; DESIGN §5.1 to 5.6 the reasons. The rules in short:

- The Tip (`i` = 2147483647) changes in every append, and is read first by every read.
- A calf holds events that were in the Tip, all of them, contiguous, and never changes. Calves may overlap the Tip.
- Whatever lies below `l` is gone, wherever a copy turns up.
"""

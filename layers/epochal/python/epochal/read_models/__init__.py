"""Read models: documents that are exactly as up to date as they say.

documents  the read models of a store: fold events into documents, and get them
keys       values of documents by which a model is queried
asking     pages of documents in the order of a key, and counts
"""

"""Publishing events as CloudEvents to buses, queues, topics, streams and HTTPS addresses."""

"""What a measurement left becomes a document: its metrics, counters, guards, costs and devices."""

"""Versions of the protocol between site and hosts.

1. Join, register, heartbeat, claim; runs and experiments from their claim to their end; git by smart HTTP.

A message may gain fields within a version: whoever reads it ignores those that it doesn't know. A field that
goes away or changes its meaning makes a new version, and a golden message of the old one stays in the tests.
"""

PROTOCOL = 1
# A site works with hosts of these versions and of those between: a host is updated after its site.
OLDEST_PROTOCOL = 1

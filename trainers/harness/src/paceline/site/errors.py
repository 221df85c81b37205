"""What goes wrong between the command line and a site, apart from the client, whose imports take time."""

from __future__ import annotations


class SiteError(Exception):
    """The site can't be asked, or refuses; the message is one sentence for people."""

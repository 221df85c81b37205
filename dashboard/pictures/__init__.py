"""Charts as pictures for other places: READMEs, chats, wikis. See docs/pictures.md."""

from dashboard.pictures.drawing import (
    KINDS,
    Picture,
    Subject,
    badge_of_series,
    describe_subject,
    picture_of,
)
from dashboard.pictures.links import find_link, link_token, make_link, revoke_link

__all__ = [
    "KINDS",
    "Picture",
    "Subject",
    "badge_of_series",
    "describe_subject",
    "find_link",
    "link_token",
    "make_link",
    "picture_of",
    "revoke_link",
]

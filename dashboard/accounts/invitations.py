"""The mail that brings a person the link by which they set their first password."""

from __future__ import annotations

import logging
import smtplib

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import send_mail
from django.template.loader import render_to_string

logger = logging.getLogger(__name__)


def send_invitation(user: User, link: str) -> bool:
    """Whether the mail server took it: where it didn't, the link has to be handed on otherwise."""
    context = {"invited": user, "link": link, "site": settings.PACELINE_URL}
    text = render_to_string("account/email/invitation.txt", context)
    try:
        send_mail("Paceline: your account", text, None, [user.email])
    except (smtplib.SMTPException, OSError) as error:
        logger.warning("An invitation couldn't be sent: %s", error)
        return False
    return True

"""Alerts by e-mail, through Django's mail settings (EMAIL_URL)."""

from __future__ import annotations

import re
import smtplib
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string

from dashboard.alerts import sentences
from dashboard.alerts.errors import DeliveryError, Refused
from dashboard.alerts.payload import link
from dashboard.models import Delivery, Regression


def send(delivery: Delivery) -> None:
    """Raises DeliveryError where the mail server did not take it, Refused where it never will."""
    message = compose(delivery)
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()), (0, b""))
        kind = Refused if 500 <= code < 600 else DeliveryError
        raise kind(f"The mail server refused {delivery.channel.address}: {code} {said(text)}.") from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryError(f"The mail server did not take the message: {reason(error)}.") from error


def compose(delivery: Delivery) -> EmailMultiAlternatives:
    regression = delivery.regression
    context = {
        "regression": regression,
        "title": sentences.title(regression),
        "size": sentences.size(regression),
        "suspects": regression.suspects[:5],
        "operations": [sentences.operation(one) for one in regression.operations[:3]],
        "link": link(regression),
    }
    message = EmailMultiAlternatives(
        subject=subject(regression),
        body=render_to_string("mail/regression.txt", context),
        to=[delivery.channel.address],
        headers={
            # The same at each attempt: a mailbox that got it twice shows it once.
            "Message-ID": f"<delivery-{delivery.pk}.{delivery.created_at:%Y%m%d%H%M%S}@{site()}>",
            "Auto-Submitted": "auto-generated",
            "X-Paceline-Project": regression.project.slug,
        },
    )
    message.attach_alternative(render_to_string("mail/regression.html", context), "text/html")
    return message


def subject(regression: Regression) -> str:
    """One line: a commit's subject may hold what must not reach a header."""
    text = f"[{regression.project.slug}] {sentences.size(regression)} since {regression.first_bad}"
    return re.sub(r"\s+", " ", text)


def site() -> str:
    return urlsplit(settings.PACELINE_URL).hostname or "localhost"


def reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {said(error.smtp_error)}"
    return str(error).strip().rstrip(".") or type(error).__name__


def said(text: bytes | str) -> str:
    plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join(plain.split()).rstrip(".")

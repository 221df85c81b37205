"""Alerts by e-mail, through Django's mail settings (EMAIL_URL)."""

from __future__ import annotations

import re
import smtplib
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string

from dashboard.alerts.errors import DeliveryError, PermanentDeliveryError
from dashboard.alerts.payload import regression_url
from dashboard.models import Delivery, Regression
from dashboard.sentences import labels
from dashboard.sentences import regressions as sentences


def send_email(delivery: Delivery) -> None:
    """Raises DeliveryError where the server did not take it, PermanentDeliveryError where it never will."""
    message = compose_email(delivery)
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()), (0, b""))
        kind = PermanentDeliveryError if 500 <= code < 600 else DeliveryError
        reply = join_reply_lines(text)
        raise kind(f"The mail server refused {delivery.channel.address}: {code} {reply}.") from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryError(f"The mail server did not take the message: {error_reason(error)}.") from error


def compose_email(delivery: Delivery) -> EmailMultiAlternatives:
    regression = delivery.regression
    context = {
        "regression": regression,
        "title": sentences.regression_title(regression),
        "change": sentences.describe_change(regression),
        "levels": labels.format_levels(regression),
        "suspects": [
            {**suspect, "edit": sentences.describe_edit(regression, suspect)}
            for suspect in regression.suspects[:5]
        ],
        "operations": [sentences.describe_operation(operation) for operation in regression.operations[:3]],
        "link": regression_url(regression),
    }
    message = EmailMultiAlternatives(
        subject=email_subject(regression),
        body=render_to_string("mail/regression.txt", context),
        to=[delivery.channel.address],
        headers={
            # The same at each attempt: a mailbox that got it twice shows it once.
            "Message-ID": f"<delivery-{delivery.pk}.{delivery.created_at:%Y%m%d%H%M%S}@{site_host()}>",
            "Auto-Submitted": "auto-generated",
            "X-Paceline-Project": regression.project.slug,
        },
    )
    message.attach_alternative(render_to_string("mail/regression.html", context), "text/html")
    return message


def email_subject(regression: Regression) -> str:
    """One line: a commit's subject may hold what must not reach a header."""
    headline = sentences.regression_headline(regression)
    where = sentences.describe_place(regression, brief=True) if regression.names_commit else regression.cause
    return re.sub(r"\s+", " ", f"[{regression.project.slug}] {headline} {where}")


def site_host() -> str:
    return urlsplit(settings.PACELINE_URL).hostname or "localhost"


def error_reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {join_reply_lines(error.smtp_error)}"
    return str(error).strip().rstrip(".") or type(error).__name__


def join_reply_lines(text: bytes | str) -> str:
    plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join(plain.split()).rstrip(".")

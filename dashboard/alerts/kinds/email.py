"""Alerts by e-mail, through Django's mail settings (EMAIL_URL)."""

from __future__ import annotations

import smtplib
from collections.abc import Mapping
from email.mime.image import MIMEImage
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMultiAlternatives
from django.core.validators import validate_email
from django.template.loader import render_to_string

from dashboard.alerts.errors import ChannelError, DeliveryError, PermanentDeliveryError
from dashboard.alerts.kinds.channel_kind import ChannelKind, Destination, KindField, required_text
from dashboard.alerts.messages import ONGOING_EVENTS, compose_message
from dashboard.alerts.pictures import draw_regression
from dashboard.models import Delivery

PICTURE_ID = "step"
ADDRESS = KindField("address", "E-mail address", "team@example.org")


def read_email_fields(written: Mapping[str, str]) -> Destination:
    address = required_text(written, ADDRESS)
    try:
        validate_email(address)
    except ValidationError as error:
        raise ChannelError(f"{address!r} is not an e-mail address.", ADDRESS.name) from error
    return Destination(address)


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
    message = compose_message(delivery)
    picture = email_picture(delivery)
    context = {"message": message, "picture_id": PICTURE_ID if picture else ""}
    mail = EmailMultiAlternatives(
        subject=message.subject,
        body=render_to_string("mail/message.txt", context),
        to=[delivery.channel.address],
        headers={
            # The same at each attempt: a mailbox that got it twice shows it once.
            "Message-ID": f"<delivery-{delivery.pk}.{delivery.created_at:%Y%m%d%H%M%S}@{site_host()}>",
            # Of all mails about one regression: a mailbox shows them as one conversation.
            "References": f"<{message.topic}@{site_host()}>",
            "Auto-Submitted": "auto-generated",
            "X-Paceline-Project": message.project,
        },
    )
    mail.attach_alternative(render_to_string("mail/message.html", context), "text/html")
    if picture:
        mail.mixed_subtype = "related"  # type: ignore[attr-defined]
        image = MIMEImage(picture, "png")
        image.add_header("Content-ID", f"<{PICTURE_ID}>")
        image.add_header("Content-Disposition", "inline", filename="step.png")
        mail.attach(image)
    return mail


def email_picture(delivery: Delivery) -> bytes:
    """Empty where there is none to show."""
    if delivery.regression is None or delivery.event not in ONGOING_EVENTS or not delivery.channel.pictures:
        return b""
    return draw_regression(delivery.regression)


def site_host() -> str:
    return urlsplit(settings.PACELINE_URL).hostname or "localhost"


def error_reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {join_reply_lines(error.smtp_error)}"
    return str(error).strip().rstrip(".") or type(error).__name__


def join_reply_lines(text: bytes | str) -> str:
    plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join(plain.split()).rstrip(".")


KIND = ChannelKind("E-mail", (ADDRESS,), read_email_fields, send_email)

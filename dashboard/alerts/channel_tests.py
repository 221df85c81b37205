"""A test message: sent at once by a worker, once, whatever mute or quiet hours say."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from dashboard import dispatch
from dashboard.models import Channel, Delivery


@transaction.atomic
def request_test(channel: Channel) -> Delivery:
    delivery = Delivery.objects.create(channel=channel, event=Delivery.Event.TEST, next_attempt_at=Now())
    dispatch.send_task(dispatch.DELIVER, delivery.pk)
    return delivery

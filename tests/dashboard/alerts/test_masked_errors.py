from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.models import Delivery


@pytest.mark.django_db
def test_what_went_wrong_quotes_no_address_to_visitors(make_delivery: Any, client: Client) -> None:
    delivery = make_delivery("email", "ada.lovelace@corp.example")
    errors = ["The mail server refused Ada.Lovelace@corp.example: 550 no such user."]
    Delivery.objects.filter(pk=delivery.pk).update(errors=errors, state="failed")
    told = client.get("/api/v1/deliveries").json()["items"][0]["errors"]
    assert told == ["The mail server refused a…@corp.example: 550 no such user."]
    page = client.get("/deliveries/").text
    assert "a…@corp.example: 550" in page
    assert "lovelace@" not in page.lower()

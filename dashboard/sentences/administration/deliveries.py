"""What of a delivery everybody may see."""

from __future__ import annotations

import re

from dashboard.models import Delivery


def shown_errors(delivery: Delivery, in_full: bool) -> list[str]:
    """What went wrong; unless in full, without the address that a mail server's answer may quote."""
    address, masked = re.escape(delivery.channel.address), masked_address(delivery)
    if in_full or not address:
        return list(delivery.errors)
    return [re.sub(address, lambda _: masked, error, flags=re.IGNORECASE) for error in delivery.errors]


def masked_address(delivery: Delivery) -> str:
    """An address for those who are not signed in: enough to recognise it, too little to use it."""
    address = delivery.channel.address
    if "://" in address:
        scheme, rest = address.split("://", 1)
        return f"{scheme}://{rest.split('/', 1)[0].rsplit('@', 1)[-1]}/…"
    name, at, host = address.partition("@")
    return f"{name[:1]}…{at}{host}"

"""The secrets that the site keeps: which there are, which are lost, and all of them under a new key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model

from dashboard.secrets.encryption import EncryptedField, is_lost


@dataclass(frozen=True)
class StoredSecret:
    """One secret of one row; `lost` where no key of the site opens it."""

    row: Model
    field: str
    lost: bool

    def __str__(self) -> str:
        return f"{self.field.replace('_', ' ')} of {self.row._meta.verbose_name} {self.row}"


def list_secrets() -> list[StoredSecret]:
    """Every secret that was ever set."""
    return [secret for row in _rows_with_secrets() for secret in secrets_of(row)]


def secrets_of(row: Model) -> list[StoredSecret]:
    """Those of one row that were ever set."""
    values = {name: getattr(row, name) for name in _secret_fields(type(row))}
    return [
        StoredSecret(row, name, is_lost(value)) for name, value in values.items() if value or is_lost(value)
    ]


def reencrypt_secrets() -> list[StoredSecret]:
    """Encrypt every secret with SECRET_KEY, all or none, and return them; lost ones stay as they are."""
    with transaction.atomic():
        secrets = [secret for row in _rows_with_secrets(lock=True) for secret in secrets_of(row)]
        for secret in secrets:
            # What is lost is written back as it was.
            secret.row.save(update_fields=[secret.field])
    return secrets


def _rows_with_secrets(*, lock: bool = False) -> Iterator[Model]:
    for model in apps.get_models():
        if _secret_fields(model):
            rows: Any = model._default_manager.order_by("pk")
            yield from rows.select_for_update() if lock else rows


def _secret_fields(model: type[Model]) -> list[str]:
    return [field.name for field in model._meta.fields if isinstance(field, EncryptedField)]

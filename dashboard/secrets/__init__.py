"""Secrets at rest: encrypted by the site's key, and lost without it."""

from dashboard.secrets.encryption import EncryptedField, LostSecret, decrypt_token, encrypt_text, is_lost

__all__ = ["EncryptedField", "LostSecret", "decrypt_token", "encrypt_text", "is_lost"]

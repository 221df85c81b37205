"""Uploaded files stay in memory, and are no larger together than a form may be: nobody fills the disk."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import MemoryFileUploadHandler


class BoundedUploadHandler(MemoryFileUploadHandler):
    """Refuses a form by its length. Django's own handlers write files of any size to the disk, of every form,
    before its page is asked: that of the sign-in too, which everybody may send.
    """

    def handle_raw_input(self, input_data: Any, META: Any, content_length: int, *more: Any) -> None:  # noqa: N803
        """Raises RequestDataTooBig."""
        if content_length > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise RequestDataTooBig(f"A form of {content_length} bytes is too large.")
        super().handle_raw_input(input_data, META, content_length, *more)

"""How the hash of a commit is written: in SHA-1 or SHA-256, whole or only its beginning."""

from __future__ import annotations

import re

FULL_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Seven digits at least, as git shortens them; a whole one too.
ABBREVIATED_HASH = re.compile(r"[0-9a-f]{7,64}")

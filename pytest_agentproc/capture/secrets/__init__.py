"""Keeps secrets out of what is written.

`_redactor` puts placeholders, `_rules` know what secrets look like, `_library` asks detect-secrets for more, `_views`
read text as others will: without escapes, in one line, from base64.
"""

from __future__ import annotations

from pytest_agentproc.capture.secrets._redactor import RedactedSecret, Redactor

__all__ = ["RedactedSecret", "Redactor"]

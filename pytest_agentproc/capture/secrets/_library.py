"""Asks detect-secrets for keys of providers. The one home of that package: another library would be asked here.

Seven of its plugins know keys for which we have no rule. The others are left out:

- entropy, addresses, `telegram_token`: they take hashes, ids and times of ordinary output for secrets;
- `keyword`, `basic_auth`, `private_key`, `jwt`, `npm` and those of GitHub, GitLab, OpenAI, PyPI, Slack, Square and
  Stripe: our own rules find more;
- those of Cloudant, IBM and SoftLayer: their time grows with the square of the blanks in a text. Our rules on telling
  names find what they find.

The import takes a tenth of a second, as the package loads an HTTP client. So it is imported when something is searched.
Nothing is ever sent: only `analyze_string` is called.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from detect_secrets.plugins.base import RegexBasedDetector

_DELIMITERS = " \t\r\n\"'=:"
_RANDOM_LOOKING_PATTERN = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")
_REST_OF_WORD_PATTERN = re.compile(r"[\w-]*")


@cache
def _load_detectors() -> tuple[RegexBasedDetector, ...]:
    from detect_secrets.plugins.artifactory import ArtifactoryDetector
    from detect_secrets.plugins.aws import AWSKeyDetector
    from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
    from detect_secrets.plugins.discord import DiscordBotTokenDetector
    from detect_secrets.plugins.mailchimp import MailchimpDetector
    from detect_secrets.plugins.sendgrid import SendGridDetector
    from detect_secrets.plugins.twilio import TwilioKeyDetector

    return (
        ArtifactoryDetector(),
        AWSKeyDetector(),
        AzureStorageKeyDetector(),
        DiscordBotTokenDetector(),
        MailchimpDetector(),
        SendGridDetector(),
        TwilioKeyDetector(),
    )


def find_keys_with_library(text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield what the library takes for a key: its kind, and where it begins and ends."""
    letters = text.decode("latin-1")  # one letter for each byte, so that places are the same
    for detector in _load_detectors():
        at = 0
        for found in detector.analyze_string(letters):
            value = found.strip(_DELIMITERS)
            if not _RANDOM_LOOKING_PATTERN.match(value):
                continue
            start = letters.find(value, at)
            if start < 0:  # the next pattern of the same plugin begins at the top again
                start = letters.find(value)
            at = start + len(value)
            rest = _REST_OF_WORD_PATTERN.match(letters, at)
            assert rest is not None
            yield detector.secret_type, start, rest.end()

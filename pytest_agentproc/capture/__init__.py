"""What really happened, as a scenario: a log from a bug report becomes a draft.

`draft` reads a pasted log (`_paste`), asks the dialect's reader what each event means (`_meaning_claude` and the like),
has the fake's own encoder confirm it (`_shadow`), takes from the reporter's words how it ended (`_reported`), and
writes the text (`_paste_scenario`). Nothing here starts a process.
"""

from __future__ import annotations

from pytest_agentproc.capture._paste_scenario import DIALECTS, draft

__all__ = ["DIALECTS", "draft"]

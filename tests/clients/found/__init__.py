"""Faults of public packages, shown by bundled scenarios; `python -m tests.clients.found` makes the page of them."""

"""The event loops in virtual time, and what they do that the hub must see."""

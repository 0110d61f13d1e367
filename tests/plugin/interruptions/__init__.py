"""Sessions that are interrupted while fakes live: pytest ends as it would without the kit, and nothing is left."""

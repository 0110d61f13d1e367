"""A fake that is a server: the connections of its clients, and the session that they hold. Knows no dialect."""

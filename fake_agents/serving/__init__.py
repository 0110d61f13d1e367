"""What a fake needs that is a server: the connections of its clients, and their session. Knows no dialect."""

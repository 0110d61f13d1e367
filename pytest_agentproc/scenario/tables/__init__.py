"""What others read of the tables: each key with its text, the keys that a file uses, and a JSON Schema."""

"""Users' data as validated views."""

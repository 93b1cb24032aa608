"""Whatever users hold, as validated views."""

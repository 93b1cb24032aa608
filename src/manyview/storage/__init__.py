"""Models and checkpoints on disk: versioned, atomic, no pickle."""

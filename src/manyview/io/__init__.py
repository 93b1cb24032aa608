"""Safe reading and writing: check files before opening, write them completely or not at all."""

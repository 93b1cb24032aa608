"""Where arrays live and how row blocks are mapped and summed; no mathematics."""

"""Rows on a GPU, or in tensors of the host."""

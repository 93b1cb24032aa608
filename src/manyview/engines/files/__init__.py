"""Rows that stay in their files."""

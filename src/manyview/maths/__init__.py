"""Every formula, for arrays of any library."""

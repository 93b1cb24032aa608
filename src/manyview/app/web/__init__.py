"""The page of `manyview app`: tables dropped on it become runs of `manyview fit`. One user, one machine."""

"""Files read and written safely: looked at before opening, whole or not at all."""

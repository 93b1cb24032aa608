"""What is said where nothing may be written."""


class Refused(FileExistsError, ValueError):
    """Something is there that is not ours to replace."""


class FolderInUse(Refused):
    """Another process writes there."""

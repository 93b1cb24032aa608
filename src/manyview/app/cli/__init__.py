"""What the commands of the command line do, one file each; `app.py` only parses."""

"""What the commands of the command line do, one file each; `cli.py` only parses."""

"""Everything about the one paper: its experiments, their results, and the page that shows them.

An experiment lists its cells; `command` runs those not yet stored and writes the tables. `page` shows
what the files say and computes nothing anew. Only the command line imports this package.
"""

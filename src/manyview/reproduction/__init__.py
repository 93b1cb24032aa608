"""Every table and figure of the paper as a grid of cells, each of which gives tidy rows.

An experiment lists its cells; `running` does those not yet stored; `results` writes the tables. What
they look like on a page is the business of `manyview.output.report`, which reads the files only.
"""

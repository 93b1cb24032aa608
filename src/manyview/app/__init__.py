"""Everything around the library: files, runs, reports, comparisons, the page, the command line."""

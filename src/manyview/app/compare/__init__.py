"""The parts of `manyview.compare`: plan, processes, stored runs, summary, figure, command."""

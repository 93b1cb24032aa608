"""Pages for readers, made from plain values and from the files of a run."""

"""How many clusters, how sure, and against which other methods."""

"""The figure, tables and page of a comparison."""

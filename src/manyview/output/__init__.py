"""What a run leaves behind: tables, model, report."""

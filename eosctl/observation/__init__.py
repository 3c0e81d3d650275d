"""Everything that gates and findings are judged by, gathered at one look."""

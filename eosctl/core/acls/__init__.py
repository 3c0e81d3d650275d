"""ACLs as values: a binding, the lines that print it, the table of rights; pure."""

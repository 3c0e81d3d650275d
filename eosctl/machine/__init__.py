"""What eosctl uses of the machine that it runs on: Java, names, files that are kept, threads."""

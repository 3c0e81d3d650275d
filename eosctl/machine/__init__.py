"""The parts of the local machine that eosctl uses: Java, names, files that are kept, threads."""

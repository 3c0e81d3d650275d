"""What eosctl keeps on disk, and the one way through a work of several steps that its journals make possible."""

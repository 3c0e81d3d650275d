"""The files that eosctl keeps on disk, and the execution of resumable steps with a journal."""

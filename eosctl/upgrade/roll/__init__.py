"""`upgrade apply`: one worker after the other."""

"""Processes of the sandbox: started, watched and stopped."""

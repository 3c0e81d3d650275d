"""What others wrote, damaged: each reader gives a value or one of the project's own errors, in little time and memory.

`python3 -m tests.fuzz [READER…]` has 100,000 examples of each, the tests of every run 500. What was once found lies
in corpus/READER, and is read first.
"""

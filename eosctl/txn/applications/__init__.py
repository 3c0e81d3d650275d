"""The command `txn applications`: transactional ids grouped by the application that uses them."""

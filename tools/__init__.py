"""Programs for those who maintain eosctl; nothing here is installed."""

"""Source offsets as values: records, keys, views and the rule which of two counts; pure, and used in Spark too."""

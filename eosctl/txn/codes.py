"""What is to be known of transactions and of transactional ids."""

from __future__ import annotations

from eosctl.codes import error, finding, warning

IDS_MAY_BE_HIDDEN = warning(
    "ids_may_be_hidden",
    "Brokers list only ids that one may DESCRIBE, and do not say that there are others.",
    "Grant DESCRIBE on every TransactionalId before relying on an absence.",
)
PRODUCERS_UNKNOWN = warning(
    "producers_unknown", "Who holds a transaction open could not be found out.", "Grant READ on the topic."
)
NOT_HANGING = warning("not_hanging", "Forced: a coordinator still knows the transaction, and gets no notice.")
UNDECODABLE = error(
    "undecodable",
    "A record of __transaction_state could not be decoded.",
    "Tell us with the bytes: it is another version, or damaged.",
)
NOT_CHECKED = finding("not_checked", "A check could not run; its result is unknown.", "Fix what the message names.")

"""The Kafka protocol as pure functions between values and bytes: no sockets, no clock.

`primitives` and `schema` turn declared layouts into codecs, `api` adds headers and versions, the `*_messages` modules
declare what eosctl sends, and `frames` cuts a byte stream into responses.
"""

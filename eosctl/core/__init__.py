"""Pure KIP-618 logic: values in, values out; no I/O, no clock, no environment."""

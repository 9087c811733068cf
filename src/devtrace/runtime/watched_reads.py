"""Whether a recording waits for the next value that is read: then no read may go past the dispatcher."""


class Reads:
    """Holds the flag of the process: a recording sets it, simulated devices ask for it."""

    are_watched = False


READS = Reads()

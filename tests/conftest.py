"""What every test process starts with."""

import signal

# A background job of a shell that has no terminal ignores SIGINT, and so would all it starts: they could not be
# interrupted, which some tests do. A signal that is handled here is at its default again in a child.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

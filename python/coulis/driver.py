"""From schedules to listings and functions: ``coulis.lower`` and ``coulis.build``."""

from ._coulis import te as _te


def lower(inp, args, name="main", binds=None, simple_mode=False):
    """What a schedule makes of its program, for those parameters; ``print`` shows it as text that coulis reads back.

    ``args``: the tensors that are the parameters, in order: every input, every output, and any computed tensor that the
    caller wants to keep. ``simple_mode`` shows the loops whole; else they are in parts, as they are compiled.

    Raises ``ValueError`` where the parameters do not fit or the schedule has no meaning.
    """
    if binds is not None:
        raise ValueError("buffers cannot be bound by hand; coulis makes them from the tensors")
    return _te.lower(inp, args, name, simple_mode)

__version__: str

class AxisError(ValueError, IndexError):
    """An axis that the array does not have."""

def ops() -> list[tuple[str, int, str]]:
    """Name, number of inputs and summary of each statistic."""

def machine() -> dict[str, object]:
    """Device, threads, C compiler, cache folder, and what was found of CUDA."""

"""Comparison of arrays in tests."""

import numpy as _np


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7):
    """Raises ``AssertionError`` unless the shapes are equal and all elements near: ``|a - d| <= atol + rtol * |d|``."""
    actual, desired = _np.asanyarray(actual), _np.asanyarray(desired)
    assert actual.shape == desired.shape, f"the shapes are {actual.shape} and {desired.shape}"
    _np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)

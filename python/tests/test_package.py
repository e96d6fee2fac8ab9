"""The package is there, and its errors are exceptions that callers know."""

import coulis


def test_the_catalogue_is_there():
    names = [name for name, _, _ in coulis.ops()]
    assert "sum" in names and "argmax" in names


def test_the_machine_has_a_device_and_threads():
    found = coulis.machine()
    assert "" not in found
    assert found["threads"] >= 1 and isinstance(found["device"], str)


def test_an_axis_error_is_caught_as_either_kind():
    assert issubclass(coulis.AxisError, ValueError) and issubclass(coulis.AxisError, IndexError)

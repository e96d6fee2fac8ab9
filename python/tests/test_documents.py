"""The guide, the docstrings and the scripts of `examples/python` run as they stand."""

import doctest
import inspect
import pathlib
import runpy

import pytest

import coulis

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
pytest.importorskip("numpy", minversion="2.0", reason="scalars of older versions print otherwise")


def test_the_guide_is_true():
    found = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=OPTIONS)
    assert found.attempted > 10 and found.failed == 0


@pytest.mark.parametrize("name", ["reduce", "describe", "plan", "reducer"])
def test_the_examples_of_a_docstring_are_true(name):
    function = getattr(coulis, name)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(function), {}, name, None, 0)
    assert examples.examples
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(examples).failed == 0


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "python").glob("*.py")), ids=lambda path: path.stem)
def test_a_script_runs(script):
    runpy.run_path(str(script), run_name="__main__")


def test_every_public_function_says_what_it_does():
    for name in coulis.__all__:
        if not name.startswith("__"):
            assert inspect.getdoc(getattr(coulis, name)), name

"""The guide, the docstrings and the scripts of `examples/python` run as they stand."""

import ast
import doctest
import importlib.util
import inspect
import pathlib
import runpy
import sys

import pytest

import coulis

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
pytest.importorskip("numpy", minversion="2.0", reason="scalars of older versions print otherwise")


def test_the_guide_is_true():
    found = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=OPTIONS)
    assert found.attempted > 10 and found.failed == 0


NORMALIZATIONS = [entry[0] for entry in coulis._coulis.normalizations()]


@pytest.mark.parametrize("name", ["reduce", "describe", "plan", "reducer", "normalization", *NORMALIZATIONS])
def test_the_examples_of_a_docstring_are_true(name):
    function = getattr(coulis, name)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(function), {}, name, None, 0)
    assert examples.examples
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(examples).failed == 0


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "python").glob("*.py")), ids=lambda path: path.stem)
def test_a_script_runs(script):
    runpy.run_path(str(script), run_name="__main__")


def reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "python" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_a_docstring_and_a_signature_and_the_reference_is_built_from_them():
    made = reference()
    page, problems = made.build()
    assert not problems
    if sys.version_info[:2] == (3, 11):  # Other versions print some signatures otherwise.
        assert page == made.PAGE.read_text(), "run `python python/reference.py`"


def test_the_stubs_name_what_is_there():
    made = reference()
    for name in made.STUBS:
        found = ast.parse(made.stub_path(name).read_text())
        module = importlib.import_module(name)
        named = lambda node: getattr(node, "name", None) or node.target.id  # noqa: E731
        own = [node for node in found.body if not isinstance(node, (ast.ImportFrom, ast.Assign))]
        stubs = {named(node): node for node in own if not named(node).startswith("_")}
        imported = {own for names in made.imports(name).values() for own in names} - {*made.LATE, "__version__"}
        assert set(stubs) | imported == set(made.public(module)) and not set(stubs) & imported
        for own, node in stubs.items():
            if isinstance(node, ast.FunctionDef):
                assert list(inspect.signature(getattr(module, own)).parameters) == [
                    *[arg.arg for arg in node.args.posonlyargs + node.args.args],
                    *([node.args.vararg.arg] if node.args.vararg else []),
                    *[arg.arg for arg in node.args.kwonlyargs],
                    *([node.args.kwarg.arg] if node.args.kwarg else []),
                ]

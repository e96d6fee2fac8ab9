"""Writes docs/python-reference.md, every public name of the package with its signature and docstring, and type stubs.

A name without a docstring, or a function without a signature, is an error. Stubs are for the modules whose functions are
made when they are imported, which a type checker cannot follow. Run it with ``python python/reference.py``; the tests
compare the page and the stubs with what it would write.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "python-reference.md"

#: Modules whose names are asked for, and those that are read as text, since they need large libraries.
MODULES = ["coulis", "coulis.te", "coulis.tir", "coulis.script", "coulis.nd", "coulis.testing"]
TEXTS = ["coulis.torch", "coulis.dask"]

#: Modules that `coulis` imports when they are asked for.
LATE = ["nd", "testing"]

#: Modules that have a stub.
STUBS = ["coulis", "coulis.te", "coulis.tir", "coulis.script"]

#: Types that several places of a stub name, as lines at its head. An element type is named, or has a name, as NumPy's have.
ALIASES = {
    "coulis": ["_Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None"],
    "coulis.te": [
        "class _Named(Protocol):",
        "    @property",
        "    def name(self) -> str: ...",
        "_Dtype: TypeAlias = str | type[Any] | _Named",
        "_Operand: TypeAlias = ExprOp | SupportsFloat | SupportsIndex",
        "_Extents: TypeAlias = _Operand | Sequence[_Operand]",
        "_Stage: TypeAlias = Tensor | Operation",
    ],
}

#: Types of parameters, as ``function(parameter)``, or ``(parameter)`` of all functions; of results, as ``function``, or ``()`` of all
#: functions; and of members, as ``Class.member``. What is not here may be anything, as arrays of any library are.
TYPES = {
    "coulis": {"(axis)": "_Axis"},
    "coulis.te": {
        **dict.fromkeys(["(a)", "(b)", "(x)", "(y)", "(cond)", "(t)", "(f)", "(value)", "(other)"], "_Operand"),
        "(dtype)": "_Dtype",
        "(name)": "str",
        "()": "PrimExpr",
        "(conditions)": "_Operand | Sequence[_Operand]",
        "ExprOp.dtype": "str",
        "IterVar.dom": "Range | None",
        "IterVar.iter_type": "str",
        "IterVar.name": "str",
        "IterVar.thread_tag": "str",
        "PrimExpr.__bool__": "bool",
        "PrimExpr.__float__": "float",
        "PrimExpr.__index__": "int",
        "PrimExpr.__int__": "int",
        "PrimExpr.name": "str",
        "PrimExpr.same_as": "bool",
        "PrimExpr.value": "int | float | bool",
        "Reduce.axis": "list[IterVar]",
        "Reduce.dtype": "str",
        "Reduce.value_index": "int",
        **dict.fromkeys(["sum", "prod", "min", "max"], "ExprOp"),
        "(expr)": "_Operand",
        "(operands)": "_Operand | Sequence[IterVar]",
        "(options)": "Any",
        "(shape)": "_Extents",
        **dict.fromkeys(["(tag)", "(thread_tag)"], "str"),
        **dict.fromkeys(["(mod)", "(span)"], "None"),
        "comm_reducer": "Callable[..., Any]",
        "comm_reducer(fcombine)": "Callable[[Any, Any], Any]",
        "comm_reducer(fidentity)": "Callable[..., Any]",
        "compute": "Any",
        "compute(attrs)": "object",
        "compute(fcompute)": "Callable[..., Any]",
        "compute(varargs_names)": "Sequence[str] | None",
        "const(dtype)": "_Dtype | None",
        "create_schedule": "Schedule",
        "create_schedule(ops)": "_Stage | Sequence[_Stage]",
        "replay": "Schedule",
        "replay(ops)": "_Stage | Sequence[_Stage]",
        "replay(trace)": "str",
        "placeholder": "Tensor",
        "placeholder(dtype)": "_Dtype | None",
        "reduce_axis": "IterVar",
        "reduce_axis(dom)": "Range | Sequence[_Operand]",
        "thread_axis": "IterVar",
        "thread_axis(dom)": "object",
        "Operation.axis": "list[IterVar]",
        "Operation.body": "list[Any]",
        "Operation.name": "str",
        "Operation.num_outputs": "int",
        "Operation.output": "Tensor",
        "Operation.output(index)": "SupportsIndex",
        "Operation.reduce_axis": "list[IterVar]",
        "Schedule.__getattribute__": "Any",
        "Schedule.__getitem__": "Stage",
        "Schedule.__getitem__(key)": "_Stage",
        "Schedule.copy": "Schedule",
        "Schedule.explain": "str",
        "Schedule.outputs": "list[Operation]",
        "Schedule.stages": "list[Stage]",
        "Schedule.trace": "str",
        "Stage.__getattribute__": "Any",
        "Stage.leaf_iter_vars": "list[IterVar]",
        "Stage.op": "Operation",
        "Tensor.__call__": "TensorSlice",
        "Tensor.__call__(args)": "_Operand",
        "Tensor.__call__(kwargs)": "_Operand",
        "Tensor.__getitem__": "TensorSlice",
        "Tensor.__getitem__(key)": "_Extents",
        "Tensor.__iter__": "NoReturn",
        "Tensor.dtype": "str",
        "Tensor.name": "str",
        "Tensor.ndim": "int",
        "Tensor.op": "Operation",
        "Tensor.shape": "list[PrimExpr]",
        "Tensor.value_index": "int",
        "TensorSlice.__getitem__": "TensorSlice",
        "TensorSlice.__getitem__(key)": "_Extents",
    },
    "coulis.tir": {"IRModule.script": "str"},
    "coulis.script": {
        "(name)": "str",
        "IRModule.__getitem__": "PrimFunc",
        "IRModule.__init__(functions)": "Mapping[str, PrimFunc]",
        "IRModule.__iter__": "Iterator[str]",
        "IRModule.__len__": "int",
        "IRModule.script": "str",
        "PrimFunc.__call__": "NoReturn",
        "PrimFunc.__init__(text)": "str",
        "PrimFunc.of": "PrimFunc",
        "PrimFunc.of(around)": "Mapping[str, Any]",
        "PrimFunc.of(func)": "Callable[..., Any]",
        "PrimFunc.script": "str",
        "TileLayout.offset": "list[Any]",
    },
}

#: Where the words of types come from.
TYPING = {
    "collections.abc": ["Callable", "Iterator", "Mapping", "Sequence"],
    "typing": ["Any", "NoReturn", "Protocol", "SupportsFloat", "SupportsIndex", "TypeAlias", "final"],
}

#: Comparisons that expressions give expressions for, and what a checker says of those that other objects have for bools.
COMPARISONS = {
    **dict.fromkeys(["__eq__", "__ne__"], "  # type: ignore[override]"),
    **dict.fromkeys(["__ge__", "__gt__", "__le__", "__lt__"], ""),
}

HEAD = """# Python: reference

Generated by `python python/reference.py`; edit the docstrings. [python.md](python.md) is the guide.
"""


class Reference:
    """The page, and what is missing for it."""

    def __init__(self):
        self.lines, self.problems = [HEAD], []

    def module(self, name):
        """The section of a module."""
        module = importlib.import_module(name)
        self.head(name, module.__doc__)
        for own in sorted(public(module), key=str.lower):
            thing = getattr(module, own)
            if inspect.ismodule(thing):
                continue
            if inspect.isclass(thing):
                self.of_class(f"{name}.{own}", thing)
            elif callable(thing):
                self.of_function(f"{name}.{own}", thing)

    def text(self, name):
        """The section of a module that is not imported."""
        tree = ast.parse((ROOT / "python" / f"{name.replace('.', '/')}.py").read_text())
        self.head(name, ast.get_docstring(tree))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                self.entry(f"{name}.{node.name}", f"({ast.unparse(node.args)})", ast.get_docstring(node))

    def head(self, name, doc):
        self.lines.append(f"## {name}\n")
        self.prose(name, doc)

    def of_class(self, name, cls):
        bases = [base.__name__ for base in cls.__bases__ if base is not object]
        self.entry(name, f"({', '.join(bases)})" if bases else "", own_doc(cls))
        for own, member in sorted(vars(cls).items()):
            if own.startswith("_") or hasattr(tuple, own) and issubclass(cls, tuple):
                continue
            if isinstance(member, property) or inspect.isgetsetdescriptor(member):
                self.entry(f"{name}.{own}", "", member.__doc__)
            elif issubclass(cls, tuple) and type(member).__name__ == "_tuplegetter":
                continue
            elif isinstance(member, (staticmethod, classmethod)) or callable(member):
                self.of_function(f"{name}.{own}", getattr(cls, own))

    def of_function(self, name, function):
        try:
            signature = str(inspect.signature(function))
        except (TypeError, ValueError):
            self.problems.append(f"{name} has no signature")
            return
        self.entry(name, re.sub(r" at 0x[0-9a-f]+", "", signature), own_doc(function))

    def entry(self, name, signature, doc):
        self.lines.append(f"### `{name}{signature}`\n")
        self.prose(name, doc)

    def prose(self, name, doc):
        if not doc or not doc.strip():
            self.problems.append(f"{name} has no docstring")
            return
        self.lines.append(as_markdown(inspect.cleandoc(doc)) + "\n")


def own_doc(thing):
    """The docstring of a thing itself, not one that it inherits from Python."""
    doc = getattr(thing, "__doc__", None)
    return None if inspect.isclass(thing) and doc == object.__doc__ else doc


def public(module):
    """The names that a module is there for."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("_")]
    own = lambda thing: getattr(thing, "__module__", None) == module.__name__  # noqa: E731
    return [name for name, thing in vars(module).items() if not name.startswith("_") and own(thing)]


def as_markdown(doc):
    """Sections of a docstring as bold lines, definitions as lists, examples as code."""
    lines, source = [], doc.replace("``", "`").splitlines()
    at, is_list = 0, False
    while at < len(source):
        line = source[at]
        under = source[at + 1] if at + 1 < len(source) else ""
        if line and set(under) == {"-"} and len(under) == len(line):
            is_list = line not in ("Examples", "Notes")
            lines += [f"**{line}**", ""]
            at += 2
        elif line.startswith(">>>"):
            block = []
            while at < len(source) and source[at].strip():
                block.append(source[at])
                at += 1
            lines += ["```python", *block, "```"]
        elif is_list and line and not line.startswith(" "):
            said = []
            at += 1
            while at < len(source) and source[at].startswith("    "):
                said.append(source[at].strip())
                at += 1
            lines.append(f"- {line}" + (f": {' '.join(said)}" if said else ""))
        else:
            lines.append(line)
            at += 1
    return "\n".join(lines).rstrip()


def build():
    """The page as text, and a line for each thing that is missing."""
    reference = Reference()
    for name in MODULES:
        reference.module(name)
    for name in TEXTS:
        reference.text(name)
    return "\n".join(reference.lines).rstrip() + "\n", reference.problems


class Types:
    """The types of a module's stub, and which of them it has used."""

    def __init__(self, name):
        self.table, self.used = TYPES.get(name, {}), set()

    def of(self, *keys):
        """The type of the first key that is known."""
        for key in keys:
            if key in self.table:
                self.used.add(key)
                return self.table[key]
        return "Any"

    def unused(self):
        return sorted(set(self.table) - self.used)


def stub(name):
    """The type stub of a module: its public names, with the parameters of functions and the members of classes."""
    module, types = importlib.import_module(name), Types(name)
    lines = []
    imported = imports(name)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        lines += ["__all__ = [", *[f'    "{own}",' for own in sorted(listed)], "]", ""]
    for source, names in imported.items():
        listed = "".join(f"    {there} as {own},\n" for own, there in names.items())
        lines.append(f"from {source} import (\n{listed})")
    lines += ALIASES.get(name, [])
    taken = {own for names in imported.values() for own in names}
    for own in sorted(set(public(module)) - taken, key=str.lower):
        thing = getattr(module, own)
        if inspect.isclass(thing):
            members = [line for member in sorted(vars(thing)) for line in stub_of_member(types, thing, member)]
            bases = ", ".join(base.__name__ for base in thing.__bases__ if base.__name__ in public(module))
            head = f"class {own}({bases}):" if bases else f"class {own}:"
            lines += [*([] if is_extensible(thing) else ["@final"]), head, *(members or ["    ..."])]
        elif inspect.isroutine(thing):
            lines.append(f"def {own}{stub_signature(types, own, inspect.signature(thing))}: ...")
        else:
            lines.append(f"{own}: Any")
    if types.unused():
        raise ValueError(f"{name} has no {', '.join(types.unused())}")
    return "\n".join([*stub_head("\n".join(lines)), *lines]) + "\n"


def stub_head(text):
    """The first lines of a stub: where its words come from."""
    head = ["# Generated by `python python/reference.py`."]
    words = set(re.findall(r"\w+", text))
    for source, names in TYPING.items():
        found = [word for word in names if word in words]
        if found:
            head.append(f"from {source} import {', '.join(found)}")
    return [*head, ""]


def imports(name):
    """Public names that a type checker finds in other modules of the package: by module, with the names that they have there."""
    if name not in ("coulis", "coulis.tir"):
        return {}
    module = importlib.import_module(name)
    found = {".": {part: part for part in LATE}} if name == "coulis" else {}
    for node in ast.parse(pathlib.Path(module.__file__).read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names = {alias.asname or alias.name: alias.name for alias in node.names}
            listed = {own: there for own, there in names.items() if own in module.__all__}
            found.setdefault("." * node.level + (node.module or ""), {}).update(listed)
    return {source: dict(sorted(names.items())) for source, names in sorted(found.items()) if names}


def is_extensible(cls):
    """Whether a class may have subclasses, as classes of the native half may not."""
    return bool(cls.__flags__ & (1 << 10))


def stub_of_member(types, cls, name):
    """The lines of a member of a class."""
    member, own = vars(cls)[name], f"{cls.__name__}.{name}"
    if name == "__getattribute__" and own in types.table:
        return [f"    def {name}(self, name: str, /) -> {types.of(own)}: ..."]
    is_compared = name in COMPARISONS and is_extensible(cls) and "ExprOp" == cls.__name__
    is_operator = name == "__init__" or name.startswith("__") and name.endswith("__") and name not in vars(object)
    if name.startswith("_") and not (is_compared or is_operator and callable(member)):
        return []
    if isinstance(member, property) or inspect.isgetsetdescriptor(member) or inspect.ismemberdescriptor(member):
        return ["    @property", f"    def {name}(self) -> {types.of(own, '()')}: ..."]
    for decorator in (staticmethod, classmethod):
        if isinstance(member, decorator):
            signature = stub_signature(types, own, inspect.signature(member.__func__))
            return [f"    @{decorator.__name__}", f"    def {name}{signature}: ..."]
    if not callable(member):
        return [f"    {name}: Any"]
    signature = stub_signature(types, own, inspect.signature(member))
    return [f"    def {name}{signature}: ...{COMPARISONS[name] if is_compared else ''}"]


def stub_signature(types, own, signature):
    """A signature with the types that are known; all else may be anything."""
    parameters = []
    for at, parameter in enumerate(signature.parameters.values()):
        name = parameter.name
        is_self = at == 0 and name in ("self", "cls")
        annotation = parameter.empty if is_self else Bare(types.of(f"{own}({name})", f"({name})"))
        default = parameter.default if parameter.default is parameter.empty else Elided()
        parameters.append(parameter.replace(annotation=annotation, default=default))
    text = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    return f"{text} -> {'None' if own.endswith('.__init__') else types.of(own, '()')}"


class Bare:
    """A type that a signature shows as it is written."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


class Elided:
    """A default that a stub does not tell."""

    def __repr__(self):
        return "..."


def stub_path(name):
    """The file of a module's stub."""
    return ROOT / "python" / name.replace(".", "/") / "__init__.pyi"


if __name__ == "__main__":
    page, problems = build()
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    PAGE.write_text(page)
    for name in STUBS:
        stub_path(name).write_text(stub(name))

"""From a Python function to the text of a kernel: values from outside put in, decided ``if`` s taken.

A name that the function does not bind itself and that is no word of the language stands for what Python finds under it:
in the closure, the module, or the builtins. An expression of such names alone is evaluated here, once, calls included, and
replaced by its value, and a call that stands alone and gives None leaves nothing; everything else is text for the parser of
coulis. This is how TVM's parser treats them; what it also does, to call Python's functions with values of the kernel, is
refused.
"""

import ast
import builtins
import inspect
import textwrap

from .._coulis import te as _te
from . import _layout
from ._words import Vocabulary

_OBJECTS = {id(value): name for name, value in vars(_layout).items() if isinstance(value, (_layout.Axis, _layout._Letter))}
_OBJECTS |= {id(_layout.TileLayout): "TileLayout", id(_layout.ComposeLayout): "ComposeLayout"}
# Loops are the language's own.
_NOT_EVALUATED = {"range"}
# Functions of Python's that the language has under the same name.
_TWINS = frozenset("abs ceil cos erf exp exp2 floor isinf isnan log log2 max min pow round sin sqrt tanh trunc".split())


class PrimFunc:
    """A kernel as text. ``script()`` prints it as coulis does; ``coulis.compile(f)`` makes it a function."""

    def __init__(self, name, text):
        self.__name__ = name
        self._text = _te.canonical(text)

    @classmethod
    def of(cls, func, around):
        """The kernel that a Python function is the text of; ``around`` are the names where it is defined."""
        try:
            source = inspect.getsource(func)
        except (OSError, TypeError) as error:
            raise ValueError(
                f"the source of `{func.__name__}` is not to be had, and @T.prim_func reads source; "
                "put the function in a file, or give coulis.compile its text"
            ) from error
        tree = ast.parse(textwrap.dedent(source)).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise TypeError(f"@T.prim_func reads a function of `def`, and `{func.__name__}` is none")
        text = ast.unparse(_Resolver(func, tree, around).resolved())
        try:
            return cls(func.__name__, text)
        except ValueError as error:
            where = f"{inspect.getsourcefile(func)}:{func.__code__.co_firstlineno}"
            raise ValueError(f"{error}\n  in `{func.__name__}` ({where}), which was read as\n{_numbered(text)}") from None

    def script(self):
        """The text, as coulis prints it."""
        return self._text

    def __call__(self, *args):
        raise TypeError(f"`{self.__name__}` is the text of a kernel; coulis.compile({self.__name__}) makes it a function")

    def __repr__(self):
        return self._text.rstrip("\n")


def _numbered(text):
    return "\n".join(f"  {at:3} | {line}" for at, line in enumerate(text.splitlines(), 1))


class _Resolver(ast.NodeTransformer):
    """Puts the values of outer names into the tree of a function."""

    def __init__(self, func, tree, around):
        self.tree = tree
        outer = inspect.getclosurevars(func)
        self.values = {**vars(builtins), **func.__globals__, **around, **outer.nonlocals}
        self.own = _bound_names(tree)

    def resolved(self):
        """The tree of a function that the parser of coulis reads."""
        tree = self.tree
        tree.decorator_list = [ast.parse("T.prim_func", mode="eval").body]
        tree.returns = None
        if tree.args.defaults or tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs:
            raise TypeError(f"the parameters of `{tree.name}` have neither defaults nor stars")
        for arg in tree.args.args:
            if isinstance(arg.annotation, ast.Constant) and isinstance(arg.annotation.value, str):
                arg.annotation = ast.parse(arg.annotation.value, mode="eval").body
            if arg.annotation is not None:
                arg.annotation = self.annotation(arg.annotation)
        if ast.get_docstring(tree) is not None:
            tree.body = tree.body[1:]
        tree.body = self.block(tree.body)
        return ast.fix_missing_locations(tree)

    def annotation(self, node):
        """What Python evaluates where the function is defined: of its own names it sees the parameters alone."""
        own = self.own
        self.own = {arg.arg for arg in self.tree.args.args}
        node = self.visit(node)
        self.own = own
        return node

    def block(self, body):
        """The statements of a block; `pass` where none is left."""
        left = []
        for stmt in body:
            found = self.visit(stmt)
            left.extend(found if isinstance(found, list) else [found] if found is not None else [])
        return left or [ast.Pass()]

    def visit_If(self, node):
        known = self.known(node.test)
        if known is None:
            node.test = self.visit(node.test)
            node.body = self.block(node.body)
            node.orelse = self.block(node.orelse) if node.orelse else []
            return node
        taken = node.body if known[0] else node.orelse
        return self.block(taken) if taken else None

    def visit_Expr(self, node):
        known = self.known(node.value)
        if known is None:
            node.value = self.visit(node.value)
            return node
        if known[0] is None:
            return None
        if isinstance(known[0], str):
            return ast.Expr(ast.Constant(known[0]))
        raise TypeError(
            f"line {node.lineno} of `{self.tree.name}`, `{ast.unparse(node)}`, is the value {known[0]!r} and no statement"
        )

    def visit_Call(self, node):
        name = ast.unparse(node.func)
        if self.is_function(node.func):
            own = name.rpartition(".")[2]
            instead = f"T.{own}" if own in _TWINS else "its expression, written out"
            raise TypeError(
                f"`{name}` in `{self.tree.name}` is a function of Python, which is called once, where the kernel is defined; "
                f"`{ast.unparse(node)}` gives it what the kernel computes; legal is {instead}"
            )
        return self.generic_visit(node)

    def is_function(self, func):
        """Whether a name, or an attribute of one, is something of Python's that can be called."""
        attributes = []
        while isinstance(func, ast.Attribute):
            attributes.append(func.attr)
            func = func.value
        if not isinstance(func, ast.Name) or self.is_inner(func.id):
            return False
        value = self.values[func.id]
        for name in reversed(attributes):
            value = getattr(value, name, None)
        return callable(value)

    def visit_For(self, node):
        node.iter = self.visit(node.iter)
        node.body = self.block(node.body)
        return node

    def visit_With(self, node):
        node.items = [self.visit(item) for item in node.items]
        node.body = self.block(node.body)
        return node

    def visit_IfExp(self, node):
        known = self.known(node.test)
        if known is None:
            return self.generic_visit(node)
        return self.visit(node.body if known[0] else node.orelse)

    def visit(self, node):
        if isinstance(node, ast.expr) and not isinstance(node, ast.Constant):
            if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
                return self.generic_visit(node)
            known = self.known(node)
            if known is not None:
                literal = _literal(known[0])
                if literal is not None:
                    return literal
                if isinstance(node, ast.Name):
                    raise self.no_value(node.id, known[0])
        return super().visit(node)

    def visit_Name(self, node):
        value = self.values.get(node.id) if node.id not in self.own else None
        if isinstance(value, Vocabulary):
            return ast.Name(value._text, node.ctx)
        if id(value) in _OBJECTS:
            return ast.Name(_OBJECTS[id(value)], node.ctx)
        return node

    def no_value(self, name, value):
        return TypeError(
            f"`{name}` in `{self.tree.name}` is {value!r} of type {type(value).__name__}; legal values from outside are "
            "numbers, bools, strings, tuples of these, and layouts"
        )

    def known(self, node):
        """The value of an expression of outer names alone, in a tuple; None for any other."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        is_constant = not names and not isinstance(node, ast.JoinedStr)
        if is_constant or any(self.is_inner(name) for name in names):
            return None
        code = compile(ast.Expression(ast.fix_missing_locations(node)), f"<{self.tree.name}>", "eval")
        return (eval(code, {"__builtins__": builtins, **self.values}),)

    def is_inner(self, name):
        """Whether a name is the function's own, a word of the language, or not known to Python."""
        if name in self.own or name not in self.values or name in _NOT_EVALUATED:
            return True
        value = self.values[name]
        return isinstance(value, Vocabulary) or id(value) in _OBJECTS


def _bound_names(tree):
    """Names that a function binds: parameters, and whatever is assigned in it."""
    names = {arg.arg for arg in tree.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Lambda):
            names.update(arg.arg for arg in node.args.args)
    return names


def _literal(value):
    """The literal of a value; None where there is none."""
    if isinstance(value, (_layout.TileLayout, _layout.ComposeLayout)):
        return ast.parse(repr(value), mode="eval").body
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        # A number of NumPy, or an array of one: Python's number of the same value.
        return _literal(value.item())
    if isinstance(value, (bool, str)):
        return ast.Constant(value)
    if isinstance(value, (tuple, list)):
        items = [_literal(item) for item in value]
        if None in items:
            return None
        kind = ast.Tuple if isinstance(value, tuple) else ast.List
        return kind(items, ast.Load())
    if isinstance(value, float):
        return _signed(value)
    if hasattr(value, "__index__"):
        return _signed(value.__index__())
    return None


def _signed(number):
    if number != number or number in (float("inf"), float("-inf")):
        return ast.parse(f'T.float32("{number}")', mode="eval").body
    if number < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-number))
    return ast.Constant(number)

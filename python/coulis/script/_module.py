"""Modules of kernels: a class under ``@I.ir_module`` whose functions are kernels."""

from ._function import PrimFunc


class IRModule:
    """Kernels by name.

    ``module["main"]`` is one of them, as ``@T.prim_func`` made it; a module with one kernel is compiled as that kernel is.
    """

    def __init__(self, name, functions):
        self.name, self.functions = name, dict(functions)

    def __getitem__(self, name):
        try:
            return self.functions[name]
        except KeyError:
            legal = ", ".join(self.functions)
            raise KeyError(f"module `{self.name}` has no kernel `{name}`; legal are {legal}") from None

    def __iter__(self):
        return iter(self.functions)

    def __len__(self):
        return len(self.functions)

    def script(self):
        """The text of its one kernel. Raises ``ValueError`` where there are several: name one, as ``module["main"]``."""
        if len(self.functions) != 1:
            names = ", ".join(self.functions)
            raise ValueError(f"module `{self.name}` has {len(self)} kernels; name one of {names}")
        return next(iter(self.functions.values())).script()

    def __repr__(self):
        return f"<coulis module {self.name}: {', '.join(self.functions)}>"


class ModuleWords:
    """The name ``I``."""

    @staticmethod
    def ir_module(cls):
        """The :class:`coulis.script.IRModule` of a class whose functions stand under ``@T.prim_func``."""
        if not isinstance(cls, type):
            raise TypeError(f"@I.ir_module reads a class, got {type(cls).__name__}")
        own = {name: thing for name, thing in vars(cls).items() if not name.startswith("__")}
        functions = {name: thing for name, thing in own.items() if isinstance(thing, PrimFunc)}
        strangers = [name for name in own if name not in functions and name != "_coulis_around"]
        if strangers:
            raise TypeError(f"`{strangers[0]}` of module `{cls.__name__}` is no kernel; put @T.prim_func before it")
        if not functions:
            raise ValueError(f"module `{cls.__name__}` has no kernel")
        return IRModule(cls.__name__, functions)

"""Variables, constants, operators by name, and functions of symbolic values.

Operands are expressions, axes, elements of tensors, or numbers of Python; a float of Python is float32, an int is int32,
and two types meet in the one that holds both.
"""

from .._coulis import te as _te


def var(name="tindex", dtype="int32"):
    """A new variable, of unknown sign unless it is the extent of a shape."""
    return _te.variable(name, dtype, False)


def size_var(name="size", dtype="int32"):
    """A new variable that is at least 0."""
    return _te.variable(name, dtype, True)


def const(value, dtype=None):
    """A constant; int32, float32 or bool after its Python type where no dtype is named."""
    return _te.constant(value, dtype)


def min_value(dtype):
    """The smallest finite value of a dtype."""
    return _te.limit("min", dtype)


def max_value(dtype):
    """The largest finite value of a dtype."""
    return _te.limit("max", dtype)


def cast(dtype, value):
    """The value in another dtype: toward zero from floats to integers, saturating; NaN becomes 0."""
    return _te.cast(dtype, value)


def if_then_else(cond, t, f):
    """``t`` where ``cond`` holds, else ``f``; only the one that is taken is evaluated."""
    return _te.choose("if_then_else", cond, t, f)


def select(cond, t, f):
    """``t`` where ``cond`` holds, else ``f``; both are evaluated, yet a division by zero only counts if taken."""
    return _te.choose("select", cond, t, f)


def all(*conditions):
    """Whether all conditions hold, as an expression."""
    return _joined("all", conditions)


def any(*conditions):
    """Whether any condition holds, as an expression."""
    return _joined("any", conditions)


def _joined(name, conditions):
    if len(conditions) == 1 and isinstance(conditions[0], (list, tuple)):
        conditions = conditions[0]
    return _te.joined(name, *conditions)


def _operation(name, meaning, called=None):
    def operation(a, b):
        return _te.binary(called or name, a, b)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = meaning
    return operation


def _function(name, meaning, called=None):
    def function(x):
        return _te.call(called or name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = meaning
    return function


add = _operation("add", "``a + b``.")
subtract = _operation("subtract", "``a - b``.")
multiply = _operation("multiply", "``a * b``.")
div = _operation("div", "``a / b`` of floats, the quotient toward zero of integers.")
truncdiv = _operation("truncdiv", "The quotient toward zero.")
truncmod = _operation("truncmod", "What is left by the quotient toward zero; it has the sign of ``a``.")
floordiv = _operation("floordiv", "The quotient rounded down.")
floormod = _operation("floormod", "What is left by the quotient rounded down; it has the sign of ``b``.")
indexdiv = _operation("indexdiv", "The quotient of indices, rounded down.", "floordiv")
indexmod = _operation("indexmod", "What is left by the quotient of indices.", "floormod")
maximum = _operation("maximum", "The larger of two; NaN where either is.", "max")
minimum = _operation("minimum", "The smaller of two; NaN where either is.", "min")

exp = _function("exp", "e to the x.")
exp2 = _function("exp2", "2 to the x.")
log = _function("log", "The natural logarithm.")
log2 = _function("log2", "The logarithm to base 2.")
sqrt = _function("sqrt", "The square root.")
rsqrt = _function("rsqrt", "One over the square root.")
tanh = _function("tanh", "The hyperbolic tangent.")
sigmoid = _function("sigmoid", "``1 / (1 + exp(-x))``.")
erf = _function("erf", "The error function.")
sin = _function("sin", "The sine.")
cos = _function("cos", "The cosine.")
abs = _function("abs", "The magnitude.", "fabs")
floor = _function("floor", "Rounds down.")
ceil = _function("ceil", "Rounds up.")
round = _function("round", "Rounds to nearest, half away from zero.")
trunc = _function("trunc", "Rounds toward zero.")
nearbyint = _function("nearbyint", "Rounds to nearest, half to even.")
isnan = _function("isnan", "Whether x is NaN.")
isinf = _function("isinf", "Whether x is an infinity.")
isfinite = _function("isfinite", "Whether x is neither NaN nor an infinity.")
popcount = _function("popcount", "The number of set bits of an integer.")
likely = _function("likely", "The condition, which nearly always holds.")


def power(x, y):
    """x to the y."""
    return _te.call("pow", x, y)


def fmod(x, y):
    """What is left of ``x / y`` toward zero, of floats."""
    return _te.call("fmod", x, y)

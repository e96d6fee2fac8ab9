"""Mistakes raise exceptions of the right kinds, with words that say what is legal."""

import re

import numpy as np
import pytest

import coulis
from coulis import te

X = np.arange(6, dtype=np.float32).reshape(2, 3)

ON_A_GPU = "a, b = s[O].split(i0, factor=2)\ns[O].bind(b, \"threadIdx.x\")"


def placeholder():
    return coulis.te.placeholder((3,), name="P")


def normalized_by_a_tensor():
    by = coulis.normalization(map=lambda v, m: v * m + placeholder()[0], statistics=["mean"], name="by")
    return by(X)


CASES = [
    (ValueError, "inhomogeneous", lambda: coulis.sum([[1], [1, 2]])),
    (TypeError, "legal element types", lambda: coulis.sum(np.array([object()]))),
    (TypeError, "legal element types", lambda: coulis.sum(["a", "b"])),
    (TypeError, "legal element types", lambda: coulis.sum(np.zeros(3, "datetime64[s]"))),
    (TypeError, "legal element types", lambda: coulis.sum(np.zeros(3, [("a", "f4")]))),
    (TypeError, "legal element types", lambda: coulis.sum(X.astype(">f4"))),
    (TypeError, "`>f4` names no element type", lambda: coulis.sum(X, dtype=">f4")),
    (TypeError, "`>f4` names no element type", lambda: coulis.sum(X, dtype=np.dtype(">f4"))),
    (TypeError, "`>f4` names no element type", lambda: te.placeholder((4,), dtype=np.dtype(">f4"))),
    (TypeError, "`>f8` names no element type", lambda: coulis.sum(X, acc_dtype=np.dtype(">f8"))),
    (TypeError, "legal element types", lambda: coulis.sum(None)),
    (NotImplementedError, "complex", lambda: coulis.sum(X * 1j)),
    (NotImplementedError, "fast_math", lambda: coulis.reduce(X, "sum", fast_math=True)),
    (NotImplementedError, "reproducible", lambda: coulis.reduce(X, "sum", reproducible=True)),
    (IndexError, "legal axes are -2 to 1", lambda: coulis.sum(X, 2)),
    (ValueError, "legal axes are -2 to 1", lambda: coulis.sum(X, -3)),
    (coulis.AxisError, "scalar", lambda: coulis.sum(np.float32(1), 0)),
    (ValueError, "given twice", lambda: coulis.sum(X, (0, -2))),
    (TypeError, "integer", lambda: coulis.sum(X, 1.0)),
    (TypeError, "integer", lambda: coulis.sum(X, True)),
    (TypeError, "integer", lambda: coulis.sum(X, (0, "1"))),
    (ValueError, "twice", lambda: coulis.reduce(X, ["sum", "max", "sum"])),
    (ValueError, "did you mean|legal names", lambda: coulis.reduce(X, "summ")),
    (ValueError, "no statistic", lambda: coulis.reduce(X, [])),
    (TypeError, "name of a statistic", lambda: coulis.reduce(X, 3)),
    (TypeError, "name of a statistic", lambda: coulis.reduce(X, {"sum"})),
    (ValueError, "empty set", lambda: coulis.max(np.empty((0, 3)))),
    (ValueError, "empty set", lambda: coulis.argmin(np.full(3, np.nan), nan="ignore")),
    (ValueError, "empty set", lambda: coulis.max(X, 1, where=[False, False, False])),
    (ValueError, r"`where` of shape \[4\] does not broadcast to the input's shape \[.*3\]", lambda: coulis.sum(X, where=np.ones(4, bool))),
    (ValueError, r"`where` is to be of bool, .* got float64 of shape \[3\]", lambda: coulis.sum(X, where=np.ones(3))),
    (ValueError, "propagate", lambda: coulis.sum(X, nan="drop")),
    (TypeError, "legal element types", lambda: coulis.sum(X, dtype="decimal")),
    (TypeError, "real number", lambda: coulis.sum(X, alpha="two")),
    (ValueError, "not among", lambda: coulis.reduce(X, ["sum"], dtype={"max": "float32"})),
    (ValueError, "legal are auto", lambda: coulis.sum(X, device="tpu")),
    (ValueError, "float32 of shape", lambda: coulis.sum(X, 0, out=np.empty(3))),
    (ValueError, "float32 of shape", lambda: coulis.sum(X, 0, out=np.empty((1, 3), np.float32))),
    (TypeError, "array", lambda: coulis.sum(X, 0, out=[1, 2, 3])),
    (ValueError, "each statistic, 2 in all, got 1", lambda: coulis.reduce(X, ["sum", "max"], out=[np.empty((), np.float32)])),
    (ValueError, "not asked for", lambda: coulis.reduce(X, ["sum"], out={"max": np.empty((), np.float32)})),
    (ValueError, "no `out`", lambda: coulis.sum(X, beta=1.0)),
    (TypeError, "masked array", lambda: coulis.sum(np.ma.array(X))),
    (TypeError, "unexpected", lambda: coulis.sum(X, axes=1)),
    (ValueError, "arrays are given", lambda: coulis.reduce((X, X), "sum")),
    (ValueError, "input", lambda: coulis.reduce(X, "dot")),
    (ValueError, "broadcast", lambda: coulis.dot(X, X.T)),
    (ValueError, "positions up to 299, and int8 holds -128 to 127", lambda: coulis.argmax(np.arange(300.0), dtype="int8")),
    (ValueError, "positions up to 299", lambda: coulis.reduce(np.arange(300.0), ["sum", "argmin"], dtype={"argmin": "int8"})),
    (ValueError, "numbers up to 300", lambda: coulis.count(np.arange(300.0), dtype="uint8")),
    (ValueError, "every integer up to 256 only", lambda: coulis.reduce(np.ones(3001), "count", dtype="bfloat16")),
    (ValueError, "every integer up to 2048 only", lambda: coulis.count_nonzero(np.ones(3001), dtype="float16")),
    (ValueError, "`P`, which is none of its elements", lambda: coulis.sum(X, prologue=lambda a: a + placeholder()[0])),
    (ValueError, "`P`, which is none of its parameters", lambda: normalized_by_a_tensor()),
    (ValueError, "a, b, c, and it gives 2", lambda: coulis.sum(X, 1, plan="a, b, c = s[S].split(k0, factor=2)")),
    (ValueError, "k0, k0, and it gives 2", lambda: coulis.sum(X, 1, plan="k0, k0 = s[S].split(k0, factor=2)")),
    (ValueError, "x, and it gives 0", lambda: coulis.sum(X, 1, plan="x = s[S].reorder(i0, k0)")),
    (ValueError, "binds `i0_inner` of `O` to threadIdx.x.*sim and cuda", lambda: coulis.sum(X, 1, plan=ON_A_GPU, device="cpu")),
    (TypeError, "one number for every output.* of shape", lambda: coulis.reduce(X, "max", 1, init=np.zeros(2))),
    (TypeError, "one number for every output", lambda: coulis.reduce(X, "max", 1, init=np.zeros(1))),
    (TypeError, "one number for every output", lambda: coulis.max(X, init="zero")),
    (TypeError, "one number for every output", lambda: coulis.max(X, init=[0])),
    (ValueError, "is to be one of the input.s type int64", lambda: coulis.max(X.astype("i8"), init=1 << 70)),
    (ValueError, "0 to 255, got", lambda: coulis.max(X.astype("u1"), init=256)),
    (ValueError, "trace|line", lambda: coulis.reduce(X, "sum", plan="s[nothing].spl")),
]


@pytest.mark.parametrize("kind, words, call", CASES, ids=range(len(CASES)))
def test_a_mistake_raises_what_a_caller_expects(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_out_that_is_not_to_be_written_is_refused():
    out = np.empty(3, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="not to be written"):
        coulis.sum(X, 0, out=out)


@pytest.mark.parametrize("beta", [0, 1])
def test_a_scalar_of_numpy_is_no_place_for_a_result(beta):
    for call in (
        lambda: coulis.sum(np.ones(3, np.float32), out=np.float32(0), beta=beta),
        lambda: coulis.reduce(np.ones(3), ["max", "sum"], out={"sum": np.float64(0)}, beta={"sum": beta}),
        lambda: coulis.softmax(np.array(3.0), axis=None, out=np.float64(0)),
    ):
        with pytest.raises(TypeError, match="is to be an array, got an object of type `float(32|64)`"):
            call()


def test_a_call_that_fails_leaves_every_out_as_it_was():
    total, place = np.full(4, 7.0), np.zeros(4, np.int64)
    mask = np.array([True, True, True, False])
    with pytest.raises(ValueError, match="empty set"):
        coulis.reduce(np.arange(12.0).reshape(3, 4), ["sum", "argmax"], axis=0, out=[total, place], where=mask)
    assert (total == 7).all() and (place == 0).all()
    coulis.reduce(np.arange(12.0).reshape(3, 4), ["sum", "argmax"], axis=0, out=[total, place], where=mask | True)
    assert total.tolist() == [12, 15, 18, 21] and place.tolist() == [2, 2, 2, 2]


def test_two_results_in_one_place_are_refused():
    out = np.empty(3, np.float32)
    with pytest.raises(ValueError, match="overlaps"):
        coulis.reduce(X, ["sum", "max"], 0, out=[out, out])


def test_an_array_at_an_odd_address_is_refused():
    odd = np.zeros(9, np.uint8)[1:].view(np.float32)
    if odd.ctypes.data % 4:
        with pytest.raises(ValueError, match="aligned to 4 bytes; that of a copy is"):
            coulis.sum(odd)


def test_a_device_that_is_not_there_is_a_runtime_error():
    if "cuda:0" in coulis.machine():
        pytest.skip("a GPU is there")
    with pytest.raises(RuntimeError, match="CUDA driver"):
        coulis.sum(X, device="cuda")


def test_a_device_that_coulis_cannot_reach_is_a_runtime_error():
    class Elsewhere:
        def __dlpack_device__(self):
            return (8, 0)

        def __dlpack__(self, **options):
            raise BufferError("not here")

    with pytest.raises(RuntimeError, match="cannot reach"):
        coulis.sum(Elsewhere())


def test_a_capsule_that_is_no_array_is_refused():
    import datetime

    class Odd:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            return datetime.datetime_CAPI

    with pytest.raises(TypeError, match="DLPack capsule"):
        coulis.sum(Odd())


class AtAddress0:
    """An array by DLPack that says of no memory that it has elements."""

    def __init__(self, extent):
        import ctypes

        fields = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32)]
        fields += [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]
        fields += [("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]
        fields += [("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
        self.shape = ctypes.c_int64(extent)
        tensor = type("Tensor", (ctypes.Structure,), {"_fields_": fields})
        self.tensor = tensor(None, (1, 0), 1, 2, 32, 1, ctypes.addressof(self.shape), None, 0, None, None)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.name = ctypes.c_char_p(b"dltensor")
        self.new = lambda: new(ctypes.addressof(self.tensor), self.name, None)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        return self.new()


@pytest.mark.parametrize("extent", [3, -3, 2**62])
def test_memory_that_cannot_be_is_refused_by_functions_too(extent):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    f = coulis.build(te.create_schedule(B.op), [A, B])
    out = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="no memory|length -3|more than 2.63 - 1 bytes"):
        f(AtAddress0(extent), out)
    with pytest.raises(ValueError, match="no memory|negative|more than 2.63 - 1 bytes"):
        coulis.sum(AtAddress0(extent))
    f(AtAddress0(0), out[:0])


def test_arrays_of_cuda_with_a_mask_are_refused():
    interface = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3, "mask": np.ones(3, bool)}
    masked = type("Masked", (), {"__cuda_array_interface__": interface})()
    with pytest.raises(TypeError, match="`x` is a masked array"):
        coulis.sum(masked)


def test_options_are_refused_in_the_words_of_the_caller():
    with pytest.raises(TypeError, match=r"softmax\(\) got an unexpected keyword argument 'keepdims'; its options are acc_dtype"):
        coulis.softmax(X, keepdims=True)
    with pytest.raises(TypeError, match="`plan` is to be what `coulis.plan` gives.*`int`"):
        coulis.sum(X, plan=3)


@pytest.mark.parametrize(
    "options, kind, words",
    [
        ({"keepdims": "no"}, TypeError, "`keepdims` is to be True or False, got an object of type `str`"),
        ({"nan": True}, TypeError, '`nan` is to be "propagate" or "ignore", got an object of type `bool`'),
        ({"device": 0}, TypeError, "`device` is to be a device, its name or None, got an object of type `int`"),
        ({"ddof": "1"}, TypeError, "`ddof` is to be a real number, got an object of type `str`"),
        ({"alpha": {"sum": "2"}}, TypeError, "`alpha` is to be a real number, got an object of type `str`"),
        ({"beta": 10**400}, ValueError, "`beta` is larger than the largest float64"),
        ({"init": 10**400}, ValueError, "of 1329 bits, which is beyond every element type"),
        ({"init": -(2**63) - 5}, ValueError, "`init` is -9223372036854775813, which is beyond every integer type"),
        ({"plan": "import os"}, ValueError, "found another statement; legal here: a call"),
        ({"axis": 10**30}, coulis.AxisError, "axis 1000000000000000000000000000000 is out of range"),
        ({"axis": np.array([0, 1])}, TypeError, "`axis` is to be an integer, a tuple of integers or None, got an object of type `ndarray`"),
        ({"stream": "a"}, TypeError, "`stream` is to be a handle or a stream"),
        ({"stream": 0}, ValueError, "`stream` is for arrays in memory of a GPU, and those of this call are in that of the CPU"),
    ],
    ids=range(13),
)
def test_an_option_of_a_wrong_kind_is_named(options, kind, words):
    with pytest.raises(kind, match=words):
        coulis.sum(X, **options)


def test_options_of_maps_plans_and_measurements_are_named_too():
    with pytest.raises(TypeError, match="`eps` is to be a real number"):
        coulis.layer_norm(X, eps="a")
    with pytest.raises(TypeError, match="`nan` is to be"):
        coulis.plan(X, "sum", nan=3)
    with pytest.raises(ValueError, match="`seconds` is to be a number above 0, got -1"):
        coulis.bench(X, "sum", seconds=-1)


def test_results_are_not_written_where_they_cannot_stand_apart():
    x = np.ones((4, 6), np.float32)
    unaligned = np.frombuffer(bytearray(32), np.float32, 4, offset=1)
    with pytest.raises(ValueError, match="multiple of 4 bytes"):
        coulis.sum(x, axis=1, out=unaligned)
    folded = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (4,), (0,))
    with pytest.raises(ValueError, match="share memory"):
        coulis.sum(x, axis=1, out=folded)
    crossed = np.lib.stride_tricks.as_strided(np.zeros(12, np.float32), (4, 6), (4, 4))
    with pytest.raises(ValueError, match="share memory"):
        coulis.softmax(x, out=crossed)
    apart = np.zeros((6, 8), np.float32)[::-2, ::2]
    assert coulis.sum(np.ones((3, 4, 5), np.float32), axis=2, out=apart) is apart and (apart == 5).all()


def test_a_type_of_another_meaning_is_not_taken_by_its_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([np.inf, 1], ml_dtypes.float8_e4m3)
    with pytest.raises(TypeError, match="`x` has elements of type `float8_e4m3`, which here has infinities"):
        coulis.max(x)
    with pytest.raises(TypeError, match="float8_e4m3fn"):
        coulis.max(np.ones(2, np.float32), dtype=ml_dtypes.float8_e4m3)
    assert coulis.max(np.array([2, 1], ml_dtypes.float8_e4m3fn)) == 2


@pytest.mark.parametrize("op", ["argmax", "argmin", "argmax_last", "argmin_last"])
def test_positions_that_may_not_be_are_not_scaled(op):
    x, where, out = np.ones((2, 3), np.float32), np.array([[True] * 3, [False] * 3]), np.full(2, 7.0)
    for options in [{"alpha": 2}, {"alpha": 0}, {"beta": 1, "out": out}]:
        with pytest.raises(NotImplementedError, match="no alpha and beta together"):
            coulis.reduce(x, op, 1, where=where, dtype="float64", **options)
    assert coulis.reduce(x, op, 1, dtype="float64", beta=1, out=out).tolist() == [7 + 2 * op.endswith("last")] * 2


def own(**functions):
    return coulis.reducer(**{"combine": lambda a, b: a + b, "identity": 0, "name": "own", **functions})


@pytest.mark.parametrize(
    "kind, words, call",
    [
        (TypeError, "`name` is to be a text", lambda: own(name=5)),
        (ValueError, "`a b` names no field", lambda: own(name="a b")),
        (TypeError, "`combine` of reducer `own` takes 1 arguments without a default; legal is 2", lambda: own(combine=lambda a, b=0: a + b)),
        (TypeError, "`lift` .* legal is 2 or 3", lambda: own(lift=lambda v: v, dtypes=["float32", "float32"])),
        (TypeError, "`lift` .* takes 1 .* legal is 2 or 3", lambda: coulis.reduce((np.ones(3), np.ones(3)), own(lift=lambda v: v))),
        (TypeError, "`finish` .* wants `q` by name", lambda: own(finish=lambda s, *, q: s)),
        (TypeError, "`prologue` is to be a function, got .*`str`", lambda: coulis.reduce(np.ones(3), "sum", prologue="abs")),
        (TypeError, "`prologue` takes 1", lambda: coulis.sum((np.ones(3), np.ones(3)), prologue=lambda a, b=2: a * b)),
        (TypeError, "softmax\\(\\) got an unexpected keyword argument 'ddof'", lambda: coulis.softmax(np.ones(3), ddof=1)),
        (ValueError, "2 arrays are given, and `softmax` reads 1", lambda: coulis.softmax((np.ones(3), np.ones(3)))),
        (ValueError, "got NaN", lambda: coulis.max(np.ones(3, "i4"), init=float("nan"))),
        (ValueError, "of `max` is 1000000.0, .* largest finite value .* float16 is 65504.0", lambda: coulis.max(np.ones(3, "f2"), init=1e6)),
        (TypeError, "`f8` is float64 where bytes are counted", lambda: coulis.sum(np.ones(3), dtype="f8")),
        (ValueError, "there is no device `cpu:1`; legal are auto, cpu, cpu:0", lambda: coulis.sum(np.ones(3), device="cpu:1")),
        (ValueError, "give a tuple of two arrays", lambda: coulis.reduce([np.ones(3), np.ones(3)], "dot")),
        (ValueError, "does not broadcast", lambda: coulis.dot(np.ones(3), np.ones((3, 4)))),
        (ValueError, "`bench` makes up one array", lambda: coulis.bench((100,), "dot")),
        (ValueError, "`bench` makes up one array", lambda: coulis.bench((100,), own())),
        (TypeError, "holds numbers, got elements of type `object`", lambda: coulis.nd.array([None])),
        (TypeError, "holds numbers, got elements of type `<U1`", lambda: coulis.nd.array(["a"])),
        (ValueError, "no device `cpu:x`", lambda: coulis.nd.array([1.0], "cpu:x")),
        (TypeError, "a device is", lambda: coulis.nd.array([1.0], 3)),
        (TypeError, "without a default; legal is 2", lambda: coulis.te.comm_reducer(lambda a: a, lambda d: 0)),
    ],
)
def test_functions_names_and_devices_are_refused_when_they_are_given(kind, words, call):
    with pytest.raises(kind, match=words):
        call()


def test_the_statistics_that_take_an_initial_value_are_listed():
    with pytest.raises(ValueError, match="takes no initial value") as refused:
        coulis.mean(np.ones(3), init=1)
    legal = str(refused.value).split("those that do are ")[1].split(", ")
    listed = re.findall("`(\\w+)`", coulis.reduce.__doc__.split("One more element, of the type of `x`, for ")[1].split(".")[0])
    assert sorted(legal) == listed
    for op in legal:
        assert coulis.reduce(np.ones(0), op, init=0.5) == getattr(coulis, op)(np.array([0.5]))


@pytest.mark.parametrize("extent", [0, -4, True, np.bool_(True)])
def test_extents_of_layouts_are_positive_integers(extent):
    from coulis.script import S, TileLayout

    with pytest.raises((TypeError, ValueError), match="the extents of S are"):
        S[extent]
    assert TileLayout(S[np.int64(4), 2]) == TileLayout(S[4, 2])


def test_tensors_that_cannot_be_read_are_a_type_error():
    torch = pytest.importorskip("torch")
    unread = {
        "sparse": torch.eye(3).to_sparse(),
        "quantized": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "nested tensor": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "meta": torch.ones(3, device="meta"),
    }
    for word, tensor in unread.items():
        with pytest.raises(TypeError, match=f"`x` is .*{word}.*legal are"):
            coulis.sum(tensor)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        narrow = torch.arange(6.0).reshape(2, 3).to(dtype)
        assert coulis.sum(narrow.T, 1, dtype="float32").tolist() == [3.0, 5.0, 7.0]
        assert coulis.max(narrow).dtype == dtype and coulis.max(narrow).item() == 5


def test_traced_arrays_of_jax_are_a_type_error():
    jax = pytest.importorskip("jax")
    for traced in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(TypeError, match="`x` is traced by JAX"):
            traced(lambda a: coulis.sum(a))(jax.numpy.ones(3))


def test_arrays_of_jax_without_memory_or_numbers_are_refused():
    jax = pytest.importorskip("jax")
    deleted = jax.numpy.ones(3)
    deleted.delete()
    for call in (lambda: coulis.sum(deleted), lambda: coulis.sum(jax.numpy.ones(3), where=deleted)):
        with pytest.raises(ValueError, match="JAX has deleted it"):
            call()
    with pytest.raises(TypeError, match=r"`x` has elements of type `key<fry>`.*jax.random.key_data"):
        coulis.sum(jax.random.key(0))


def test_laws_of_a_reducer_are_tried_where_the_types_of_its_elements_are_known():
    wrong = {"combine": lambda a, b: a - b, "identity": 0, "name": "wrong"}
    for dtypes in ("int32", ["float64"]):
        with pytest.raises(ValueError, match="`wrong` is refuted"):
            coulis.reducer(dtypes=dtypes, **wrong)
    untyped = coulis.reducer(**wrong)
    with pytest.raises(ValueError, match="`wrong` is refuted"):
        coulis.reduce(np.arange(4.0), untyped)


def test_masks_and_what_functions_give_say_what_is_legal():
    x = np.ones((3, 4))
    for mask in (np.array(["a"] * 4), [True, None, True, False]):
        with pytest.raises(TypeError, match="`where` has elements of type .*; they are to be bool"):
            coulis.softmax(x, where=mask)
    with pytest.raises(TypeError, match=r"`where` is a masked array; give an array in which its mask is False"):
        coulis.sum(x, where=np.ma.array([True] * 4, mask=[False, True, False, False]))
    for wrong in (None, "a"):
        with pytest.raises(TypeError, match="`prologue` is to give one or two expressions of its elements, got an object of"):
            coulis.softmax(x, prologue=lambda v: wrong)  # noqa: B023
    with pytest.raises(TypeError, match="`left_out` of normalization `centred` is to be a number or None, got str"):
        coulis.normalization(map=lambda v, mean: v - mean, statistics=["mean"], name="centred", left_out="0")

"""Maps that read each element beside the statistics of its row: softmax and the norms.

A row is read from memory once: its statistics are finished and its elements mapped while it is in a cache.
"""

from __future__ import annotations

from ._coulis import consume


def softmax(x, axis=-1, **options):
    """Exponentials of the elements over the sum of the row's exponentials, without overflow.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    **options
        `dtype`, `acc_dtype`, `nan`, `alpha`, `beta`, `out`, `device`, `stream`, `plan`, as in `coulis.reduce`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.softmax(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    return consume(x, "softmax", axis, **options)


def log_softmax(x, axis=-1, **options):
    """Elements less the logarithm of the sum of the row's exponentials, without overflow.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    **options
        As in `coulis.softmax`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.log_softmax(np.array([1000.0, -1000.0]))
    array([    0., -2000.])
    """
    return consume(x, "log_softmax", axis, **options)


def layer_norm(x, axis=-1, weight=None, bias=None, eps=1e-5, *, normalized_shape=None, **options):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of each row.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    weight, bias : array, or None
        Of the shape of a row.
    eps : float
        Added under the root.
    normalized_shape : tuple of int
        The lengths of the last axes, which a row then has, in place of `axis`.
    **options
        As in `coulis.softmax`; and `ddof`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.layer_norm(np.array([[1.0, 3.0]]), weight=np.array([10.0, 100.0]), eps=0)
    array([[-10., 100.]])
    """
    axis = _of_shape(x, axis, normalized_shape)
    return consume(x, "layer_norm", axis, {"weight": weight, "bias": bias}, {"eps": eps}, **options)


def rms_norm(x, axis=-1, weight=None, eps=None, *, normalized_shape=None, **options):
    """``x / sqrt(mean(x ** 2) + eps) * weight`` of each row.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    weight : array, or None
        Of the shape of a row.
    eps : float, or None
        Added under the root; by default the distance from 1 to the next number of the type of `x`.
    normalized_shape : tuple of int
        The lengths of the last axes, which a row then has, in place of `axis`.
    **options
        As in `coulis.softmax`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.rms_norm(np.array([[3.0, 3.0]]), eps=0)
    array([[1., 1.]])
    """
    axis = _of_shape(x, axis, normalized_shape)
    return consume(x, "rms_norm", axis, {"weight": weight}, {"eps": eps}, **options)


def batch_norm(x, axis, weight=None, bias=None, eps=1e-5, **options):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of each channel, by the statistics of `x`.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int or tuple of int
        The axes that are not channels: (0, 2, 3) for images in NCHW order.
    weight, bias : array, or None
        Of the shape of the channels.
    eps : float
        Added under the root.
    **options
        As in `coulis.softmax`; and `ddof`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.batch_norm(np.array([[1.0, 10.0], [3.0, 30.0]]), axis=0, eps=0)
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    return consume(x, "batch_norm", axis, {"weight": weight, "bias": bias}, {"eps": eps}, **options)


def _of_shape(x, axis, normalized_shape):
    """The last axes, where their lengths are given; they are compared with those of `x`."""
    if normalized_shape is None:
        return axis
    if isinstance(normalized_shape, int):
        normalized_shape = (normalized_shape,)
    wanted = tuple(normalized_shape)
    shape = tuple(getattr(x, "shape", ()))
    if len(wanted) == 0 or shape[-len(wanted) :] != wanted:
        raise ValueError(f"`normalized_shape` is to be the last lengths of {shape}, got {wanted}")
    return tuple(range(-len(wanted), 0))

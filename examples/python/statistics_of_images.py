"""Statistics of a set of images: normalisation constants and a quality check, in one read.

A batch of photographs as a camera gives them: 8-bit, height by width by channel. A network wants mean and standard
deviation of each channel; a person wants to know which images are too dark, and where each is brightest.
"""

import numpy as np

import coulis

generator = np.random.default_rng(7)
exposure = generator.uniform(0.1, 1.0, size=(32, 1, 1, 1))
images = (generator.integers(0, 256, size=(32, 48, 64, 3)) * exposure).astype(np.uint8)

# One read gives all statistics of a channel. They are float64, because the elements are integers.
channels = coulis.reduce(images, ["mean", "std", "min", "max"], axis=(0, 1, 2))
print("mean of the channels", np.round(channels.mean, 2))
print("their deviation     ", np.round(channels.std, 2))

# Another one gives what is to be known of an image.
of_image = coulis.reduce(images, ["mean", "maxloc"], axis=(1, 2, 3))
dark = np.flatnonzero(of_image.mean < 40)
print(f"{len(dark)} images are dark; the brightest pixel of the first is at {of_image.maxloc.index[0]}")

# Views are read where they are: a crop, every other row, upside down.
crop = images[:, ::-2, 8:-8]
np.testing.assert_allclose(coulis.mean(crop, (0, 1, 2)), crop.mean((0, 1, 2)))

# A mask leaves pixels out: clipped ones do not count here.
clean = coulis.reduce(images, ["mean", "count"], axis=(1, 2), where=(images > 0) & (images < 255))
assert clean.count.max() <= 48 * 64
np.testing.assert_allclose(channels.mean, images.mean((0, 1, 2)))

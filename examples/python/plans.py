"""A plan is a schedule: print it, ask why it was chosen, edit it, and run it again."""

import numpy as np

import coulis

x = np.random.default_rng(0).normal(size=(512, 1024)).astype(np.float32)
plan = coulis.plan(x, ["mean", "var"], axis=1)
print(f"strategy {plan.name}")
print(plan.trace)
print(plan.explain())

# The plan runs by itself, or in place of coulis' choice.
np.testing.assert_array_equal(plan(x).mean, coulis.reduce(x, ["mean", "var"], 1, plan=plan).mean)

# Without any primitive the loops run as they were stated: the same numbers, slower.
plan.trace = ""
np.testing.assert_allclose(plan(x).var, x.var(1), rtol=1e-4)

# How fast is it here? The floor is a plain read of as many bytes.
measured = coulis.bench(x, ["mean", "var"], axis=1, seconds=0.05)
print(f"{measured.gb_per_second:.1f} GB/s on {measured.device}, {measured.seconds / measured.floor:.2f} times the floor")

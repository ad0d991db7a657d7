"""What needs no operation: lazy imports, lines of the user's code, processes, settings, lists of names, whole files.

Not here: anything that computes with tensors. These modules import only the native module and each other. The native
module imports `rgrad._tensor.size` while it starts, so this file and that of `_tensor` import nothing.
"""

"""Transforms that need no backward pass: levels, batches (``vmap``) and forward mode (``jvp``, ``jacfwd``).

``autograd`` and ``func`` are built on this package and it imports neither, so that both can use it.

Not here: the public names, and the transforms that need backward passes (``func``).
"""

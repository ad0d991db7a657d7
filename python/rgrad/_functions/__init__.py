"""Functions of `rgrad` and methods of `Tensor` that are written in Python, by family, and the list of them.

Not here: what they are made with (`_operation`), and families with a module of their own (`special`, `linalg`).
"""

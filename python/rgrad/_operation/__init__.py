"""What a function in Python is made with: checked arguments, `out=`, overrides, derivatives, its forms as a method.

Not here: the functions themselves (`_functions`, `special`, `linalg`, `nn.functional`).
"""

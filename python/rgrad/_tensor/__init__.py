"""The tensor as an object: how it is made, copied, pickled and printed, its `Size`, its bits as NumPy arrays.

Not here: functions of tensors (`_functions`), and files (`_files`). Nothing is imported here: the native module imports
`size` while it starts.
"""

"""What `save` and `load` are made of: archives, pickles with few rights, memory that processes share.

Not here: their public names (`serialization`), and how a file is written as a whole (`_runtime.whole_files`).
"""

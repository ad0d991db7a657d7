"""What is dropped before the interpreter ends."""

import atexit

from . import _core

# The weights that autocast has converted belong to the thread, whose memory is freed when objects of Python cannot be.
atexit.register(_core.clear_autocast_cache)

"""``python -m rgrad.env`` prints what a bug report should say about the machine."""

from .utils.collect_env import main

if __name__ == "__main__":
    main()

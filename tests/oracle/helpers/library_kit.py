"""What a function of a library gives or raises, in words that do not depend on the library."""

import warnings

import torch

import rgrad


def told(check, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = check(library)
        except Exception as error:
            kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
            return kind, str(error)
    return repr(result).replace("torch.", "").replace("rgrad.", ""), None


def agree(check):
    """Assert that both libraries give the same values, or the same type of error with the same first words."""
    expected, got = told(check, torch), told(check, rgrad)
    assert got[0] == expected[0]
    if expected[1] is not None:
        # The first sentence, or what a longer message of our own begins with.
        words = expected[1].split(". ")[0].split(": [")[0].rstrip(".")
        assert words in got[1].replace("rgrad", "torch"), got[1]


def named(module):
    """The checks of a test file by name."""
    return {name[6:]: f for name, f in module.items() if name.startswith("check_")}

"""The older name of what :mod:`rgrad.hub` does with state dicts."""

from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]

"""All divergences of pairs of distributions: those of one family, those by moments, and those that are infinite."""

from __future__ import annotations

from . import _kl_moments, _kl_normals, _kl_same  # noqa: F401 (they register their rules)

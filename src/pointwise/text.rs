//! Formulas as text, for docstrings.

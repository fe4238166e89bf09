"""The command line of gapless, and what it is made of. Needs nothing but Python's standard library."""

__version__ = "0.1.0"

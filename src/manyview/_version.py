"""The version and the home of the project, in the one place that names them."""

__version__ = "0.1.0"

#: Address of the repository, without a slash at its end; empty until there is one. The links of the
#: published package are made of it (setup.py).
HOME = ""

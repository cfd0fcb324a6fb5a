"""Packages that install only beside a card's compiler, so that a script which asks for one can be simulated without it.

A stand-in has the package's own names, and takes the memory that its source says; it is used where the package is not
installed and the script, its arguments or a file beside it name it.
"""
